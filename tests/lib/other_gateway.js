// Starts npm's stripe-stateful-mock on loopback, and says where.
//
// The package is not changed but for this: a charge in its list names its customer, as in Stripe's API, since otherwise
// no list of a customer's charges has any. The wire can lose answers: GET /_/lose/before/N and /_/lose/after/N have
// the next N calls that write ended without an answer, before or after they were carried out.
const http = require("http");
const mock = require("stripe-stateful-mock");
const { charges } = require("stripe-stateful-mock/dist/api/charges");

const list = charges.list;
charges.list = (account, query) => {
  for (const charge of list(account, {}).data) charge.customer = charge.source.customer;
  return list(account, query);
};

const app = mock.createExpressApp();
const lost = { before: 0, after: 0 };
const server = http.createServer((request, response) => {
  const [, when, n] = request.url.match(/^\/_\/lose\/(before|after)\/([0-9]+)$/) || [];
  if (when) {
    lost[when] = Number(n);
    response.end("200 OK");
    return;
  }
  if (request.method === "POST" && lost.before > 0) {
    lost.before--;
    request.socket.destroy();
    return;
  }
  if (request.method === "POST" && lost.after > 0) {
    lost.after--;
    response.end = () => request.socket.destroy();
  }
  app(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));

// The test that started this is gone without ending it.
const parent = process.ppid;
setInterval(() => process.ppid === parent || process.exit(), 1000);
