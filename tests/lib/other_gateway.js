// Starts npm's stripe-stateful-mock on loopback, and says where.
//
// The package is made to keep to Stripe's API in two places: a charge in a list names its customer, since otherwise no
// list of a customer's charges has any, and a charge that is asked for by a name which the API does not know is refused.
// The wire can lose answers: GET /_/next/before/N and /_/next/after/N have the next N calls that write ended without an
// answer, before or after they were carried out. GET /_/next/pending/N has the next N charges pending until they were
// listed.
const http = require("http");
const mock = require("stripe-stateful-mock");
const { charges } = require("stripe-stateful-mock/dist/api/charges");
const { RestError } = require("stripe-stateful-mock/dist/api/RestError");

const NAMES = ["amount", "currency", "customer", "source", "metadata"]; // of those of the API
const { create, list } = charges;
charges.create = (account, form) => {
  const unknown = Object.keys(form).find((name) => !NAMES.includes(name));
  if (unknown) throw new RestError(400, { code: "parameter_unknown", param: unknown, type: "invalid_request_error" });
  const charge = create(account, form);
  if (next.pending > 0 && next.pending--) charge.status = "pending";
  return charge;
};
charges.list = (account, query) => {
  const all = list(account, {}).data;
  for (const charge of all) charge.customer = charge.source.customer;
  setImmediate(() => all.filter((e) => e.status === "pending").forEach((e) => (e.status = "succeeded")));
  return list(account, query);
};

const app = mock.createExpressApp();
const next = { before: 0, after: 0, pending: 0 };
const server = http.createServer((request, response) => {
  const [, when, n] = request.url.match(/^\/_\/next\/(before|after|pending)\/([0-9]+)$/) || [];
  if (when) {
    next[when] = Number(n);
    response.end("200 OK");
    return;
  }
  if (request.method === "POST" && next.before > 0) {
    next.before--;
    request.socket.destroy();
    return;
  }
  if (request.method === "POST" && next.after > 0) {
    next.after--;
    response.end = () => request.socket.destroy();
  }
  app(request, response);
});
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));

// The test that started this is gone without ending it.
const parent = process.ppid;
setInterval(() => process.ppid === parent || process.exit(), 1000);
