// npm @modelcontextprotocol/sdk 1.x. Copied beside its node_modules before it is run.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { URL: url, TOKEN, COMMAND } = process.env;
const client = new Client({ name: 'sdk1', version: '1' });
const headers = { Authorization: `Bearer ${TOKEN}` };
await client.connect(new StreamableHTTPClientTransport(new globalThis.URL(url), { requestInit: { headers } }));
console.log('tools', ...(await client.listTools()).tools.map((tool) => tool.name));
const result = await client.callTool({ name: 'bash', arguments: { command: COMMAND } });
console.log('called', result.content[0].text);
await client.close();
