// npm @modelcontextprotocol/client 2.x: MODE. Copied beside its node_modules before it is run.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { URL: url, TOKEN, COMMAND } = process.env;
const [mode] = process.argv.slice(2);
const client = new Client({ name: 'client2', version: '1' }, { versionNegotiation: { mode } });
const headers = { Authorization: `Bearer ${TOKEN}` };
await client.connect(new StreamableHTTPClientTransport(new globalThis.URL(url), { requestInit: { headers } }));
console.log('tools', ...(await client.listTools()).tools.map((tool) => tool.name));
const result = await client.callTool({ name: 'bash', arguments: { command: COMMAND } });
console.log('called', result.content[0].text);
await client.close();
