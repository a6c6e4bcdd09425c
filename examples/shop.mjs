// A shop's first hour: a SKU, a user, money, a subscription, an order, what was decided, a refund.
//
//   node examples/shop.mjs postgresql://webshop@localhost/ledgerlock
//
// The login is a member of ledgerlock_shop, _cashier, _warehouse and _support, and a pool runs: ledgerlock run.
// Every call may be made again with its key when its answer was lost, and changes nothing then.
import pg from 'pg'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

pg.types.setTypeParser(pg.types.builtins.INT8, Number) // else a bigint is a text; ids and amounts stay below 2^53
const db = new pg.Client({ connectionString: process.argv[2] })
await db.connect()

async function rows(name, ...values) {
  const places = values.map((_, i) => `$${i + 1}`).join(', ')
  return (await db.query(`SELECT * FROM ledgerlock.${name}(${places})`, values)).rows
}
const value = async (name, ...values) => (await rows(name, ...values))[0][name]

// The decisions behind a cursor, for ever. A program that ends keeps the cursor of the last one it has dealt with.
async function* decisions(cursor) {
  for (;;) {
    const page = await rows('decisions_since', cursor)
    for (const decision of page) yield ({ cursor } = decision), decision
    if (page.length === 0) await sleep(100)
  }
}

const name = `customer-${randomUUID()}`
await value('create_sku', 'TEA', 450, 'EUR') // 4.50 a box; support
await value('receive_stock', 'TEA', `delivery for ${name}`, 10) // warehouse
const user = await value('create_user', name, 'EUR')
await value('deposit', user, 'EUR', 5000, 'first top-up') // cashier, when the payment provider says so
const start = await value('decisions_from')
const club = await value('subscribe', user, 'tea club', 900, 'EUR', 'month', 1, new Date(), 0, 'tea club')
const lines = JSON.stringify([{ sku: 'TEA', qty: 2 }]) // an array as it is would become one of PostgreSQL
const order = await value('place_order', user, 'cart 1', lines)

const waiting = new Set([`order ${order}`, `subscription ${club}`])
for await (const d of decisions(start)) {
  const of = d.order_id ? `order ${d.order_id}` : `subscription ${d.subscription_id}`
  if (waiting.delete(of)) console.log(d.decision, d.amount_minor, d.currency, d.reason ?? '')
  if (waiting.size === 0) break
}

try {
  await value('refund', user, 'payment', order, 0, 1000, 'a box was crushed', 'refund 1')
} catch (error) { // LL003: more than was paid
  console.log('refused', error.code, error.message)
}
console.log('refunded', await value('refund', user, 'payment', order, 0, 450, 'a box was crushed', 'refund 1')) // support
console.log('balance', (await rows('balance', user))[0].balance_minor)
await db.end()
