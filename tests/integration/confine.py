# SPDX-License-Identifier: Apache-2.0
"""Runs a command under the limits of a systemd unit, where there is no systemd to do it.

    confine.py UNIT [--write FOLDER]... -- COMMAND...

In effect are: ProtectSystem=strict (FOLDERs stand for the unit's own), CapabilityBoundingSet, NoNewPrivileges,
SystemCallFilter, RestrictNamespaces, RestrictAddressFamilies, MemoryDenyWriteExecute, UMask.  It stays a process of the same id.
"""
import ctypes
import errno
import os
import re
import socket
import subprocess
import sys

CLONE_NEWNS, MS_SLAVE, MS_REC, MS_BIND = 0x20000, 1 << 19, 1 << 14, 1 << 12
NAMESPACES = {"mnt": 0x20000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000, "user": 0x10000000,
              "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
PROT_WRITE, PROT_EXEC = 2, 4
ALLOW, REFUSE = 0x7fff0000, 0x00050000
EQ, MASKED_EQ = 4, 7

libc = ctypes.CDLL("libc.so.6", use_errno=True)


def must(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def directives(unit):
    """{name: [value, ...]} in the unit's order; an empty value takes back those before it."""
    found = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", open(unit).read(), re.M):
        found[name] = found.get(name, []) + [value] if value else []
    return found


# ---- files ----

class MountAttr(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("set", "clear", "propagation", "userns_fd")]


def set_read_only(path, on):
    attr = MountAttr(set=MOUNT_ATTR_RDONLY if on else 0, clear=0 if on else MOUNT_ATTR_RDONLY)
    must(libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE, ctypes.byref(attr), ctypes.sizeof(attr)), path)


def protect_system(writable):
    must(libc.unshare(CLONE_NEWNS), "unshare")
    must(libc.mount(b"", b"/", None, MS_SLAVE | MS_REC, None), "mount /")
    for path in writable:
        must(libc.mount(path.encode(), path.encode(), None, MS_BIND | MS_REC, None), path)
    set_read_only("/", True)
    for path in ["/proc", "/sys", "/dev", *writable]:
        set_read_only(path, False)


# ---- capabilities ----

def bound(wanted):
    header = open("/usr/include/linux/capability.h").read()
    numbers = {n: int(v) for n, v in re.findall(r"#define (CAP_\w+)\s+(\d+)$", header, re.M)}
    for number in set(range(int(open("/proc/sys/kernel/cap_last_cap").read()) + 1)) - {numbers[w] for w in wanted}:
        must(libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "capabilities")


# ---- system calls ----

class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def members(group):
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", group], check=True, stdout=subprocess.PIPE, text=True).stdout
    for word in re.findall(r"^ +(@?[a-z_][\w-]*)$", text, re.M):
        yield from members(word) if word.startswith("@") else [word]


def allowed_calls(lists):
    allowed = set()
    for words in lists:
        named = set()
        for word in words.removeprefix("~").split():
            named |= set(members(word)) if word.startswith("@") else {word}
        allowed = allowed - named if words.startswith("~") else allowed | named
    return allowed | set(members("@default"))


def conditions(unit):
    """{call: alternatives}: what its arguments have to be."""
    away = sum(flag for name, flag in NAMESPACES.items() if name not in unit["RestrictNamespaces"][0].split())
    families = [int(getattr(socket, f)) for f in unit["RestrictAddressFamilies"][0].split()]
    rules = {call: [Compare(0, MASKED_EQ, away, 0)] for call in ("unshare", "clone")}
    rules["setns"] = [Compare(1, EQ, NAMESPACES[n]) for n in unit["RestrictNamespaces"][0].split()]
    rules["socket"] = [Compare(0, EQ, f) for f in families]
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        rules["mmap"] = [Compare(2, MASKED_EQ, PROT_WRITE | PROT_EXEC, p) for p in (0, PROT_WRITE, PROT_EXEC)]
        rules["mprotect"] = [Compare(2, MASKED_EQ, PROT_EXEC, 0)]
    return rules


def filter_calls(unit):
    lib = ctypes.CDLL("libseccomp.so.2")
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(REFUSE | errno.EPERM))
    rules = conditions(unit)
    for call in sorted(allowed_calls(unit["SystemCallFilter"]) - {"clone3"}):
        number = lib.seccomp_syscall_resolve_name(call.encode())
        for condition in rules.get(call, [None]):
            if number >= 0:  # else: of another architecture
                result = lib.seccomp_rule_add_array(context, ALLOW, number, int(condition is not None),
                                                    ctypes.byref(condition) if condition is not None else None)
                assert result == 0, (call, result)
    # The C library then uses clone, whose flags a filter can see.
    lib.seccomp_rule_add_array(context, REFUSE | errno.ENOSYS, lib.seccomp_syscall_resolve_name(b"clone3"), 0, None)
    assert lib.seccomp_load(context) == 0


def main():
    at = sys.argv.index("--")
    unit, command = directives(sys.argv[1]), sys.argv[at + 1:]
    assert unit["ProtectSystem"] == ["strict"] and unit["NoNewPrivileges"] == ["yes"]
    protect_system(sys.argv[3:at:2])
    os.umask(int(unit["UMask"][0], 8))
    bound(unit["CapabilityBoundingSet"][0].split())
    must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    filter_calls(unit)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
