/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/images.h"

#include "base/mem.h"
#include "lab/lab_internal.h"
#include "wire/tar.h"

#include <elf.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>

#define PROGRAM_MAX ((size_t) 16 << 20)
#define HEX_SIZE 65

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#define ARCHITECTURE "unknown"
#endif

/* ---- programs ---- */

int lab_check_static(const void *data, size_t size)
{
    Elf64_Ehdr h;
    if (size < sizeof h) {
        return -ENOEXEC;
    }
    memcpy(&h, data, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phoff > size ||
        h.e_phnum > (size - h.e_phoff) / sizeof(Elf64_Phdr)) {
        return -ENOEXEC;
    }
    for (size_t i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, (const char *) data + h.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_INTERP) {
            return -ENOEXEC;
        }
    }
    return 0;
}

static int read_static(const char *path, const char *package, struct strbuf *out, struct err *e)
{
    int r = file_read(path, PROGRAM_MAX, out, e);
    if (r == -ENOENT) {
        return err_set(e, r, "%s is not installed (Debian package %s)", path, package);
    }
    if (r == 0 && (r = lab_check_static(out->data, out->size)) < 0) {
        return err_set(e, r, "%s is not a static program; install the Debian package %s", path,
                       package);
    }
    return r;
}

/* ---- layers ---- */

/* A layer with one file. */
static void program_layer(struct strbuf *layer, const char *name, const struct strbuf *program)
{
    tar_add(layer, &(struct tar_entry){name, 0755, program->data, program->size, NULL});
    tar_end(layer);
}

static void add_text(struct strbuf *layer, const char *name, const char *text)
{
    tar_add(layer, &(struct tar_entry){name, 0644, text, strlen(text), NULL});
}

static int busybox_layer(struct strbuf *layer, const char *path, const struct strbuf *program,
                         struct err *e)
{
    static const char *const folders[] = {"bin/",  "dev/",  "etc/", "home/", "home/user/",
                                          "proc/", "root/", "sys/", "var/",  "www/"};
    CLEANUP_STRBUF struct strbuf applets = STRBUF_INIT;
    const char *argv[] = {path, "--list", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    int status = 0;
    int r = process_run(&s, STOP_TIMEOUT_MS, &applets, NULL, &status, e);
    if (r < 0) {
        return r;
    }
    if (status != 0) {
        return err_set(e, -EIO, "%s --list: exit status %d", path, status);
    }
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        tar_add(layer, &(struct tar_entry){folders[i], 0755, NULL, 0, NULL});
    }
    tar_add(layer, &(struct tar_entry){"tmp/", 01777, NULL, 0, NULL});
    add_text(layer, "etc/passwd",
             "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n");
    add_text(layer, "etc/group", "root:x:0:\nuser:x:1000:\n");
    add_text(layer, "www/index.html", "it works\n");
    tar_add(layer, &(struct tar_entry){"bin/busybox", 0755, program->data, program->size, NULL});
    char *line = applets.data;
    while (line && *line) {
        char *eol = strchr(line, '\n');
        if (eol) {
            *eol = '\0';
        }
        CLEANUP_FREE char *name = xasprintf("bin/%s", line);
        if (!streq(line, "busybox") && strlen(name) <= 100 && !strchr(line, '/')) {
            tar_add(layer, &(struct tar_entry){name, 0777, NULL, 0, "busybox"});
        }
        line = eol ? eol + 1 : NULL;
    }
    tar_end(layer);
    return 0;
}

/* ---- images ---- */

static void sha256_hex(const void *p, size_t size, char out[HEX_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_Digest(p, size, digest, &n, EVP_sha256(), NULL) != 1) {
        abort();
    }
    for (unsigned i = 0; i < n; i++) {
        snprintf(out + 2 * (size_t) i, 3, "%02x", digest[i]);
    }
}

enum { LAYER_PAUSE, LAYER_BUSYBOX, LAYER_DEPLOYER, N_LAYERS };

struct image {
    const char *name, *entrypoint, *command; /* One of the latter two may be NULL. */
    const char *user, *stop_signal, *port;   /* Each may be NULL. */
    int layer;
};

static const struct image images[] = {
    {.name = LAB_IMAGE_PAUSE, .entrypoint = "/pause", .layer = LAYER_PAUSE},
    {.name = LAB_IMAGE_BUSYBOX, .command = "/bin/sh", .layer = LAYER_BUSYBOX},
    {.name = "localhost/busybox-user:1",
     .command = "/bin/sh",
     .user = "1000",
     .stop_signal = "SIGINT",
     .port = "8080/tcp",
     .layer = LAYER_BUSYBOX},
    {.name = "localhost/busybox-name:1",
     .command = "/bin/sh",
     .user = "user",
     .layer = LAYER_BUSYBOX},
    {.name = LAB_IMAGE_DEPLOYER, .entrypoint = "/tenet-deployer", .layer = LAYER_DEPLOYER},
};

static struct json *list_of(const char *text)
{
    struct json *a = json_array();
    json_append(a, json_string(text));
    return a;
}

/* Owned: the image's configuration. */
static char *configuration(const struct image *i, const char *layer_digest)
{
    CLEANUP(json_free) struct json *v = json_object();
    json_set_string(v, "architecture", ARCHITECTURE);
    json_set_string(v, "os", "linux");
    json_set_string(v, "created", "1970-01-01T00:00:00Z");
    struct json *config = json_ensure_object(v, "config");
    json_set(config, "Env", list_of("PATH=/bin"));
    if (i->entrypoint) {
        json_set(config, "Entrypoint", list_of(i->entrypoint));
    }
    if (i->command) {
        json_set(config, "Cmd", list_of(i->command));
    }
    json_set_string(config, "WorkingDir", "/");
    if (i->user) {
        json_set_string(config, "User", i->user);
    }
    if (i->stop_signal) {
        json_set_string(config, "StopSignal", i->stop_signal);
    }
    if (i->port) {
        json_set(json_ensure_object(config, "ExposedPorts"), i->port, json_object());
    }
    struct json *rootfs = json_ensure_object(v, "rootfs");
    json_set_string(rootfs, "type", "layers");
    CLEANUP_FREE char *digest = xasprintf("sha256:%s", layer_digest);
    json_set(rootfs, "diff_ids", list_of(digest));
    return json_to_text(v);
}

static void add_image(struct strbuf *archive, struct json *manifest, const struct image *i,
                      const char *layer_digest)
{
    char id[HEX_SIZE];
    CLEANUP_FREE char *text = configuration(i, layer_digest);
    sha256_hex(text, strlen(text), id);
    CLEANUP_FREE char *config = xasprintf("%s.json", id);
    CLEANUP_FREE char *layer = xasprintf("%s/layer.tar", layer_digest);
    tar_add(archive, &(struct tar_entry){config, 0644, text, strlen(text), NULL});
    struct json *entry = json_append(manifest, json_object());
    json_set_string(entry, "Config", config);
    json_set(entry, "RepoTags", list_of(i->name));
    json_set(entry, "Layers", list_of(layer));
}

static void add_layer(struct strbuf *archive, const struct strbuf *layer, char digest[HEX_SIZE])
{
    sha256_hex(layer->data, layer->size, digest);
    CLEANUP_FREE char *name = xasprintf("%s/layer.tar", digest);
    tar_add(archive, &(struct tar_entry){name, 0644, layer->data, layer->size, NULL});
}

int lab_images_write(const char *path, struct err *e)
{
    CLEANUP_FREE char *pause = NULL;
    CLEANUP_FREE char *deployer = NULL;
    CLEANUP_FREE char *busybox = tool_path("busybox");
    CLEANUP_STRBUF struct strbuf pause_program = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf deployer_program = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf busybox_program = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf archive = STRBUF_INIT;
    CLEANUP(json_free) struct json *manifest = json_array();
    char digests[N_LAYERS][HEX_SIZE];
    if (!busybox) {
        return err_set(e, -ENOENT, "busybox is not installed (Debian package busybox-static)");
    }
    int r = program_find("tenet-pause", &pause, e);
    if (r < 0 || (r = program_find("tenet-deployer", &deployer, e)) < 0 ||
        (r = read_static(pause, "tenet", &pause_program, e)) < 0 ||
        (r = read_static(deployer, "tenet", &deployer_program, e)) < 0 ||
        (r = read_static(busybox, "busybox-static", &busybox_program, e)) < 0) {
        return r;
    }
    for (int i = 0; i < N_LAYERS && r == 0; i++) {
        CLEANUP_STRBUF struct strbuf layer = STRBUF_INIT;
        switch (i) {
        case LAYER_PAUSE:
            program_layer(&layer, "pause", &pause_program);
            break;
        case LAYER_BUSYBOX:
            r = busybox_layer(&layer, busybox, &busybox_program, e);
            break;
        case LAYER_DEPLOYER:
            program_layer(&layer, "tenet-deployer", &deployer_program);
            break;
        }
        if (r == 0) {
            add_layer(&archive, &layer, digests[i]);
        }
    }
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
        add_image(&archive, manifest, &images[i], digests[images[i].layer]);
    }
    CLEANUP_FREE char *text = json_to_text(manifest);
    add_text(&archive, "manifest.json", text);
    tar_end(&archive);
    return file_write_unsynced(path, archive.data, archive.size, 0644, e);
}
