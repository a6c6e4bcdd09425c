// Calls a gateway with so many promises at once, over node's own agent, which keeps connections:
// promises.mjs URL KEY_FILE CALLS IN_FLIGHT
import { readFileSync } from 'node:fs';
import http from 'node:http';

const [url, keyFile, calls, inFlight] = process.argv.slice(2);
const bearer = 'Bearer ' + readFileSync(keyFile, 'utf8').trim();
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(inFlight) });

function pay(number) {
  const key = `ll_${process.pid}_${String(number).padStart(56, '0')}`;
  const form = new URLSearchParams({
    amount: 100, currency: 'usd', customer: `cus_bench_${number}`, payment_method: `pm_bench_${number}`, confirm: true, off_session: true,
    'metadata[charge_id]': `charge/${key}`, 'metadata[attempt_id]': key });
  const headers = { Authorization: bearer, 'Idempotency-Key': key, 'Content-Type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const request = http.request(`${url}/v1/payment_intents`, { method: 'POST', agent, headers }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => resolve(answer.statusCode === 200 && JSON.parse(Buffer.concat(parts)).status === 'succeeded'));
    });
    request.on('error', reject);
    request.end(form.toString());
  });
}

let next = 0, succeeded = 0;
async function goOn() {
  while (next < Number(calls)) {
    const isPaid = await pay(next++);
    succeeded += isPaid;
  }
}

const begun = performance.now();
await Promise.all(Array.from({ length: Number(inFlight) }, goOn));
const seconds = (performance.now() - begun) / 1000;
agent.destroy();
console.log(JSON.stringify({ succeeded, seconds, calls_per_s: succeeded / seconds }));
