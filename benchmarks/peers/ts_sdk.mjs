// Peer: the TypeScript SDK on Node, JSON replies, sessions, no token and no log. Arguments: PORT FILE.
// It is copied beside its node_modules before it is run: that is where Node looks for packages.
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as z from 'zod/v4';

const [port, small] = process.argv.slice(2);
const open = new Map();
const text = (value) => ({ content: [{ type: 'text', text: value }] });

async function newSession() {
  const server = new McpServer({ name: 'peer', version: '1' });
  server.registerTool('echo', { description: 'Give the text back.', inputSchema: { text: z.string() } }, async (args) => text(args.text));
  server.registerTool('read', { description: 'Give the file\'s text.', inputSchema: { path: z.string() } }, async () => text(await readFile(small, 'utf8')));
  const transport = new StreamableHTTPServerTransport({
    enableJsonResponse: true,
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => open.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

createServer(async (request, response) => {
  const id = request.headers['mcp-session-id'];
  if (id !== undefined && !open.has(id)) return response.writeHead(404).end();
  const transport = open.get(id) ?? await newSession();
  await transport.handleRequest(request, response);
}).listen(Number(port), '127.0.0.1');
