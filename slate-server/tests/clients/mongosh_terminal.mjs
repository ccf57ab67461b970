// mongosh in a terminal of tmux, as a person uses it: types commands, completes names with Tab, pastes a script, reads on with `it`. What the
// terminal shows must be what mongosh_terminal.txt has; with UPDATE=1 it is written there.
//
// usage: node mongosh_terminal.mjs MONGOSH URI; URI without a database, of a server in memory that was started with --changes

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [mongosh, uri] = process.argv.slice(2);
const golden = new URL('mongosh_terminal.txt', import.meta.url);

// A text is typed and ended with Enter. `tab` is typed, then Tab is pressed, and the line must become `becomes`. `paste` is pasted.
const steps = [
  'show dbs',
  'use shop',
  'db',
  'show collections',
  'db.createCollection("orders")',
  'db.customers.insertOne({ _id: 0, name: "n0", city: "Bern", a: 0 })',
  'db.customers.insertMany([1, 2, 3].map(i => ({ _id: i, name: "n" + i, a: i })))',
  'for (let i = 4; i < 50; i++) db.customers.insertOne({ _id: i, name: "n" + i, a: i % 5 })',
  'show collections',
  'show dbs',
  'db.customers.find({}, { name: 1 })',
  'it',
  'it',
  'it',
  'db.customers.findOne({ _id: 3 })',
  'db.customers.find({ a: 1 }, { name: 1 }).sort({ _id: -1 }).limit(2)',
  'db.customers.countDocuments({ a: 1 })',
  'db.customers.estimatedDocumentCount()',
  'db.customers.distinct("a")',
  'db.customers.createIndex({ a: 1 })',
  'db.customers.getIndexes()',
  'db.customers.find({ a: 1 }).explain("executionStats")',
  'db.customers.updateOne({ _id: 1 }, { $set: { b: [1, { c: ISODate("2026-01-01") }] } })',
  'db.customers.updateMany({ a: 2 }, { $inc: { a: 10 } })',
  'db.customers.replaceOne({ _id: 77 }, { name: "new" }, { upsert: true })',
  'db.customers.findOneAndUpdate({ _id: 1 }, { $push: { b: 2 } }, { returnDocument: "after" })',
  'db.customers.deleteOne({ _id: 77 })',
  'db.customers.deleteMany({ a: 4 })',
  'db.customers.bulkWrite([{ insertOne: { document: { _id: "x" } } }, { deleteOne: { filter: { _id: "x" } } }])',
  'db.customers.aggregate([{ $group: { _id: "$a", n: { $sum: 1 } } }, { $sort: { _id: 1 } }])',
  'db.orders.insertMany([{ _id: 1, customer: 1 }, { _id: 2, customer: 1 }])',
  'db.orders.aggregate([{ $lookup: { from: "customers", localField: "customer", foreignField: "_id", as: "by" } }, { $unwind: "$by" }, { $project: { "by.name": 1 } }])',
  'db.orders.insertOne({ _id: 1 })',
  'db.orders.find({ $no: 1 })',
  'db.createView("names", "customers", [{ $project: { name: 1 } }])',
  'db.names.find({ _id: { $lt: 2 } })',
  'var session = db.getMongo().startSession(); var within = session.getDatabase("shop")',
  'session.startTransaction()',
  'within.orders.insertOne({ _id: 3 })',
  'db.orders.countDocuments()',
  'session.commitTransaction()',
  'db.orders.countDocuments()',
  'session.startTransaction(); within.orders.deleteMany({}); session.abortTransaction()',
  'db.orders.countDocuments()',
  { tab: 'db.customers.insertM', becomes: 'db.customers.insertMany' },
  '([{ _id: 100 }])',
  { tab: 'db.ord', becomes: 'db.orders' },
  '.findOne()',
  { paste: 'function total(name) {\n  let sum = 0;\n  db[name].find().forEach(row => {\n    sum += row._id;\n  });\n  return sum;\n}\n' },
  'total("orders")',
  'var cursor = db.customers.find().batchSize(5); cursor.next(); cursor.next()._id',
  'cursor.hasNext()',
  'var changes = db.orders.watch(); db.orders.insertOne({ _id: 4 }); changes.next().fullDocument',
  'db.version()',
  'db.hello().setName',
  'rs.status().members.map(member => member.stateStr)',
  'db.stats().collections',
  'db.currentOp().inprog.length > 0',
  'db.runCommand({ ping: 1 }).ok',
  'db.orders.renameCollection("sales")',
  'db.sales.drop()',
  'show tables',
  'db.dropDatabase()',
];

const folder = mkdtempSync(join(tmpdir(), 'slate-terminal-'));
const socket = join(folder, 'tmux');
const environment = { ...process.env, HOME: folder, TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' };
const tmux = (...words) =>
  execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...words], { env: environment, encoding: 'utf8' });
const screen = () => tmux('capture-pane', '-p', '-J').trimEnd();
const type = text => tmux('send-keys', '-l', '--', text);
const press = key => tmux('send-keys', key);

// The line on which a person types: the last one.
const line = () => screen().split('\n').at(-1);
const prompt = /^\w+ \[direct: primary\] (\w+)>\s?(.*)$/;
const typed = () => line().match(prompt)?.[2]?.trimEnd();
// How many prompts the terminal has shown.
const prompts = () => screen().split('\n').filter(row => prompt.test(row)).length;

async function until(what, holds) {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    if (holds()) return;
    await new Promise(resolve => setTimeout(resolve, 30));
  }
  throw new Error(`${what}: the terminal shows\n${screen()}`);
}

// What differs from run to run.
const masked = text =>
  text
    .replaceAll(/Timestamp\(\{ t: \d+, i: \d+ \}\)/g, 'Timestamp({ … })')
    .replaceAll(/host: '[^']*', port: \d+/g, "host: '…', port: …")
    .replaceAll(/(executionTimeMillis|executionTimeMillisEstimate): \d+/g, '$1: …')
    .replaceAll(/executionTimeMicros: Long\('\d+'\)/g, "executionTimeMicros: Long('…')")
    .replaceAll(/\d+\.\d+ KiB/g, '… KiB')
    .replaceAll(/[ \t]+$/gm, '');

try {
  tmux('new-session', '-d', '-x', '110', '-y', '2000', mongosh, '--quiet', `${uri}test`);
  await until('mongosh starts', () => typed() === '');
  for (const step of steps) {
    const before = prompts();
    if (step.tab) {
      type(step.tab);
      await until(step.tab, () => typed() === step.tab);
      press('Tab');
      await until(`Tab after ${step.tab}`, () => typed() === step.becomes);
      continue;
    }
    if (step.paste) {
      tmux('set-buffer', '--', step.paste);
      tmux('paste-buffer', '-p');
      press('Enter');
    } else {
      type(step);
      press('Enter');
    }
    await until(step.paste ?? step, () => prompts() > before && typed() === '');
  }
  const shown = `${masked(screen())}\n`;
  if (process.env.UPDATE) writeFileSync(golden, shown);
  const expected = readFileSync(golden, 'utf8');
  if (shown !== expected) {
    const [rows, wanted] = [shown.split('\n'), expected.split('\n')];
    const at = rows.findIndex((row, number) => row !== wanted[number]);
    const around = lines => lines.slice(Math.max(at - 3, 0), at + 4).join('\n');
    throw new Error(`the terminal shows\n${around(rows)}\ninstead of\n${around(wanted)}`);
  }
  console.log(`mongosh in a terminal: ${steps.length} steps show what they should`);
} finally {
  try {
    tmux('kill-server');
  } catch {
    // It has ended.
  }
  rmSync(folder, { recursive: true, force: true });
}
