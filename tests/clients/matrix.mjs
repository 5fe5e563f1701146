// SPDX-License-Identifier: Apache-2.0
// Does to every kind what tests/integration/client_matrix.py asks for, by a client of npm: node matrix.mjs CLIENT WORK.json
// prints one line of JSON for each verb of each kind, with what the client returned or threw.
import fs from 'node:fs';
import * as k8s from '@kubernetes/client-node';
import openshift from 'openshift-rest-client';

const work = JSON.parse(fs.readFileSync(process.argv[3], 'utf8'));
const TYPES = {
  json: 'application/json-patch+json', merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json', apply: 'application/apply-patch+yaml',
};
const WAIT_MS = 10000;

function config() {
  const kc = new k8s.KubeConfig();
  kc.loadFromFile(work.kubeconfig);
  // Without TLS it wants to be told so.
  const clusters = kc.clusters.map((c) => ({ ...c, skipTLSVerify: c.skipTLSVerify || c.server.startsWith('http:') }));
  kc.loadFromOptions({ clusters, users: kc.users, contexts: kc.contexts, currentContext: kc.currentContext });
  return kc;
}

function split(version) {
  const at = version.lastIndexOf('/');
  return at < 0 ? ['', version] : [version.slice(0, at), version.slice(at + 1)];
}

function markOf(item, object) {
  return object?.metadata?.[item.mark[0]]?.[item.mark[1]];
}

// The types of the events until the object has its last mark, by a watch that begins where the list was made.
function watched(item, start) {
  const [group, version] = split(item.version);
  const base = group ? `/apis/${group}/${version}` : `/api/${version}`;
  const path = `${base}${item.namespaced ? '/namespaces/default' : ''}/${item.plural}`;
  return new Promise((resolve, reject) => {
    const types = [];
    let stop = null;
    const end = setTimeout(() => { stop?.abort(); reject(new Error(`the last change did not come: ${types}`)); }, WAIT_MS);
    const done = (error) => { clearTimeout(end); error && error.name !== 'AbortError' ? reject(error) : resolve(types); };
    const query = { resourceVersion: start, fieldSelector: `metadata.name=${item.name}` };
    new k8s.Watch(config()).watch(path, query, (type, object) => {
      types.push(type);
      if (markOf(item, object) === 'update') {
        clearTimeout(end);
        resolve(types);
        stop?.abort();
      }
    }, done).then((controller) => { stop = controller; }, reject);
  });
}

// ---- the clients ----

class Objects {
  constructor() { this.api = k8s.KubernetesObjectApi.makeApiClient(config()); }
  create(item) { return this.api.create(item.object); }
  get(item) { return this.api.read(item.object); }
  list(item) { return this.api.list(item.version, item.kind, item.namespaced ? 'default' : undefined); }
  patch(item, verb) {
    // It finds the kind in the patch.
    const body = { apiVersion: item.version, kind: item.kind, ...item.patches[verb] };
    body.metadata = { ...body.metadata, name: item.name, ...(item.namespaced ? { namespace: 'default' } : {}) };
    return this.api.patch(body, undefined, undefined, 'matrix', verb === 'apply' ? true : undefined, TYPES[verb]);
  }
  update(item, object) { return this.api.replace(object); }
  watch(item, start) { return watched(item, start); }
  delete(item) { return this.api.delete(item.object, undefined, undefined, 0); }
}

class Typed {
  constructor() { this.config = config(); }
  call(verb, item, more, ...options) {
    const [group, version] = split(item.version);
    const words = (group.replace(/\.k8s\.io$/, '') || 'core').split('.').map((w) => w[0].toUpperCase() + w.slice(1)).join('');
    const type = k8s[`${words}V${version.slice(1)}Api`];
    const api = type ? this.config.makeApiClient(type) : null;
    const method = `${verb}${item.namespaced ? 'Namespaced' : ''}${item.kind}`;
    const where = item.namespaced ? { namespace: 'default' } : {};
    if (api && api[method]) {
      return api[method]({ ...where, ...more }, ...options);
    }
    const custom = this.config.makeApiClient(k8s.CustomObjectsApi);
    const name = `${verb === 'read' ? 'get' : verb}${item.namespaced ? 'Namespaced' : 'Cluster'}CustomObject`;
    return custom[name]({ group, version, plural: item.plural, ...where, ...more }, ...options);
  }
  create(item) { return this.call('create', item, { body: item.object }); }
  get(item) { return this.call('read', item, { name: item.name }); }
  list(item) { return this.call('list', item, {}); }
  patch(item, verb) {
    const more = verb === 'apply' ? { fieldManager: 'matrix', force: true } : {};
    return this.call('patch', item, { name: item.name, body: item.patches[verb], ...more },
      k8s.setHeaderOptions('Content-Type', TYPES[verb]));
  }
  update(item, object) { return this.call('replace', item, { name: item.name, body: object }); }
  watch(item, start) { return watched(item, start); }
  delete(item) { return this.call('delete', item, { name: item.name, gracePeriodSeconds: 0, body: {} }); }
}

class OpenShift {
  async connect() { this.client = await openshift.OpenshiftClient({ config: work.kubeconfig }); }
  all(item) {
    const [group, version] = split(item.version);
    const at = group ? this.client.apis[group][version] : this.client.api[version];
    return (item.namespaced ? at.namespaces('default') : at)[item.plural];
  }
  one(item) { return this.all(item)(item.name); }
  async body(answer) {
    const { body, statusCode } = await answer;
    if (statusCode >= 300) {
      throw new Error(`${statusCode} ${JSON.stringify(body)}`);
    }
    return body;
  }
  create(item) { return this.body(this.all(item).post({ body: item.object })); }
  get(item) { return this.body(this.one(item).get()); }
  list(item) { return this.body(this.all(item).get()); }
  patch(item, verb) {
    const qs = verb === 'apply' ? { fieldManager: 'matrix', force: true } : {};
    return this.body(this.one(item).patch({ body: item.patches[verb], headers: { 'content-type': TYPES[verb] }, qs }));
  }
  update(item, object) { return this.body(this.one(item).put({ body: object })); }
  async watch(item, start) {
    const types = [];
    // Its public name is there for the older paths of watches only, which the OpenAPI documents do not list.
    const stream = await this.all(item)._getWatchObjectStream({
      qs: { watch: true, resourceVersion: start, fieldSelector: `metadata.name=${item.name}` } });
    const end = setTimeout(() => stream.destroy(new Error(`the last change did not come: ${types}`)), WAIT_MS);
    try {
      for await (const event of stream) {
        types.push(event.type);
        if (markOf(item, event.object) === 'update') {
          break;
        }
      }
    } finally {
      clearTimeout(end);
    }
    return types;
  }
  delete(item) { return this.body(this.one(item).delete({ body: { gracePeriodSeconds: 0 } })); }
}

// ---- the work ----

function say(item, verb, what) {
  fs.writeSync(1, JSON.stringify({ version: item.version, kind: item.kind, verb, ...what }) + '\n');
}

async function run(client, item) {
  let start = null;
  let last = null;
  const first = item.verbs.includes('list') ? ['list'] : [];
  for (const verb of [...first, ...item.verbs]) {
    try {
      if (verb === 'list') {
        const list = await client.list(item);
        start = start ?? list.metadata.resourceVersion;
        say(item, verb, { names: list.items.map((o) => o.metadata.name) });
      } else if (verb === 'watch') {
        say(item, verb, { types: await client.watch(item, start) });
      } else if (verb === 'delete') {
        await client.delete(item);
        say(item, verb, {});
      } else if (verb === 'update') {
        const object = last;
        object.metadata[item.mark[0]] = { ...object.metadata[item.mark[0]], [item.mark[1]]: 'update' };
        last = await client.update(item, object);
        say(item, verb, { object: last });
      } else {
        last = TYPES[verb] ? await client.patch(item, verb) : await client[verb](item);
        say(item, verb, { object: last });
      }
    } catch (e) {
      say(item, verb, { error: `${e.name}: ${e.message} ${e.body ? JSON.stringify(e.body) : ''}`.slice(0, 4000) });
    }
  }
}

const client = new { objects: Objects, typed: Typed, openshift: OpenShift }[process.argv[2]]();
await client.connect?.();
for (const item of work.items) {
  await run(client, item);
}
process.exit(0);
