// Peer: an estimate of the first bridge, which ran on Bun: token, sessions, and two audit records for each call, each with
// its own size check, append and chmod. It checks no schema, no origin and no limit. Arguments: PORT FILE TOKEN LOG.
import { appendFileSync, chmodSync, readFileSync, renameSync, statSync } from 'node:fs';

const [port, small, token, log] = process.argv.slice(2);
const sessions = new Map();
const tools = ['echo', 'read'].map((name) => ({ name, description: name, inputSchema: { type: 'object' } }));
const refuse = (status) => new Response(null, { status });

function remember(record) {
  const line = JSON.stringify(record) + '\n';
  let size = 0;
  try { size = statSync(log).size; } catch { /* the first record makes the file */ }
  if (size + line.length > 512 * 1024) renameSync(log, log + '.1');
  appendFileSync(log, line);
  chmodSync(log, 0o600);
}

function call(sid, { name, arguments: args }) {
  const id = crypto.randomUUID();
  remember({ ts: new Date().toISOString(), id, sid, phase: 'start', tool: name, args });
  const text = name === 'echo' ? args.text : readFileSync(small, 'utf8');
  remember({ ts: new Date().toISOString(), id, sid, phase: 'done', tool: name, isError: false, args });
  return { content: [{ type: 'text', text }], isError: false };
}

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(port),
  async fetch(request) {
    if (request.headers.get('authorization') !== `Bearer ${token}`) return refuse(401);
    const { id, method, params } = await request.json();
    const answer = (result, headers = {}) => Response.json({ jsonrpc: '2.0', id, result }, { headers });
    if (method === 'initialize') {
      const sid = crypto.randomUUID();
      sessions.set(sid, Date.now());
      const about = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'peer', version: '1' } };
      return answer(about, { 'mcp-session-id': sid });
    }
    const sid = request.headers.get('mcp-session-id');
    if (!sessions.has(sid)) return refuse(404);
    sessions.set(sid, Date.now());
    switch (method) {
      case 'ping': return answer({});
      case 'tools/list': return answer({ tools });
      case 'tools/call': return answer(call(sid, params));
      default: return refuse(202);
    }
  },
});
