// mongo-express in headless Chromium: databases, collections, documents, queries, aggregation, indexes, statistics, export. Takes the URI of a
// server, the URL of mongo-express, whose login is admin:pass, and a folder for screenshots. CHROMIUM names the browser.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { MongoClient } from 'mongodb';

const [uri, express, folder] = process.argv.slice(2);
const client = await MongoClient.connect(uri);
const database = client.db('shop');
const users = database.collection('users');
await database.dropDatabase();

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, httpCredentials: { username: 'admin', password: 'pass' } });
const page = await context.newPage();
const problems = [];
page.on('response', (response) => { if (response.status() >= 500) problems.push(`${response.status()} ${response.url()}`); });
page.on('dialog', (dialog) => dialog.accept());
let shots = 0;
const shot = async (name) => page.screenshot({ path: `${folder}/${String(++shots).padStart(2, '0')}-${name}.png` });
const shows = async (text) => page.getByText(text).locator('visible=true').first().waitFor({ timeout: 15_000 });
// A form that was sent leads to a page of its own.
const open = async (path) => {
  await page.waitForLoadState('networkidle');
  // The way of a sent form to its page can interrupt this.
  for (let tries = 0; ; tries += 1) {
    try {
      return await page.goto(`${express}${path}`, { waitUntil: 'networkidle' });
    } catch (error) {
      if (tries === 5) throw error;
      await page.waitForTimeout(500);
    }
  }
};
// What mongo-express writes is there when its page has answered.
const becomes = async (read, expected) => {
  for (let tries = 0; tries < 50 && (await read()) !== expected; tries += 1) await page.waitForTimeout(100);
  assert.equal(await read(), expected);
};
const fill = async (editor, text) => page.evaluate(([id, text]) => {
  const area = document.getElementById(id);
  const shown = area.nextElementSibling?.CodeMirror ?? area.parentElement.querySelector('.CodeMirror')?.CodeMirror;
  if (shown) { shown.setValue(text); shown.save(); } else { area.value = text; }
}, [editor, text]);

// A database, a collection
await open('/');
await page.locator('#database').fill('shop');
await page.getByRole('button', { name: 'Create Database' }).click();
await shows('shop');
await shot('databases');
await open('/db/shop');
await page.locator('#collection').first().fill('users');
await page.getByRole('button', { name: 'Create collection' }).first().click();
await shows('users');
await becomes(async () => (await database.listCollections({ name: 'users' }).toArray()).length, 1);
await shot('database');

// A document is added, edited and deleted
await open('/db/shop/users');
await page.getByRole('button', { name: 'New Document' }).click();
await page.waitForTimeout(500);
await fill('document', '{ "_id": 1000, "name": "added", "age": 7 }');
await shot('new-document');
await page.locator('#addDocumentForm button[type=submit]').click();
await becomes(async () => (await users.findOne({ _id: 1000 }))?.name, 'added');
await open('/db/shop/users/1000');
await shows('added');
await fill('document', '{ "_id": 1000, "name": "edited", "age": 7 }');
await shot('document');
await page.locator('#documentEditForm button[type=submit]').first().click();
await becomes(async () => (await users.findOne({ _id: 1000 }))?.name, 'edited');
await open('/db/shop/users/1000');
await page.locator('.deleteButtonDocument').first().click();
await becomes(async () => users.countDocuments({ _id: 1000 }), 0);

// Queries, sorts, an aggregation
await users.insertMany([...Array(60).keys()].map((n) => ({ _id: n, name: `user ${n}`, age: n % 5, at: new Date(0) })));
await open('/db/shop/users');
await shows('user 3');
await shot('documents');
await open('/db/shop/users?key=age&value=3&type=N');
await shows('user 8');
assert.equal(await page.getByText('user 7', { exact: true }).count(), 0);
await open(`/db/shop/users?query=${encodeURIComponent('{"age": {"$gte": 4}, "_id": {"$lt": 20}}')}&projection=${encodeURIComponent('{"name": 1}')}&sort[name]=-1`);
await shows('user 9');
assert.equal(await page.getByText('user 3', { exact: true }).count(), 0);
await shot('query');
await open(`/db/shop/users?runAggregate=on&query=${encodeURIComponent('[{"$group": {"_id": "$age", "total": {"$sum": 1}}}, {"$sort": {"_id": 1}}]')}`);
await shows('total');
await shot('aggregation');

// Indexes
await open('/db/shop/users');
await page.getByRole('button', { name: 'New Index' }).click();
await page.waitForTimeout(500);
await fill('index', '{ "age": 1, "name": -1 }');
await page.locator('#addIndexForm button[type=submit]').click();
await becomes(async () => (await users.indexes()).map((index) => index.name).join(), '_id_,age_1_name_-1');
await open('/db/shop/users');
await shows('age_1_name_-1');
await page.locator('#indexes').scrollIntoViewIfNeeded();
await shot('indexes');
await page.locator('a[href*="dropIndex"][href*="age_1_name_-1"]').click();
await becomes(async () => (await users.indexes()).length, 1);

// Compaction, export, renaming, dropping
await open('/db/shop/users');
await page.locator('a[href*="/compact/users"]').first().click();
await shows('Collection compacted!');
const exported = await context.request.get(`${express}/db/shop/export/users?type=S`);
assert.equal((await exported.text()).trim().split('\n').length, 60);
await open('/db/shop/users');
const rename = page.locator('form:has(input[name=_method][value=put])');
await rename.locator('#collection').fill('people');
await rename.getByRole('button').click();
await becomes(async () => (await database.listCollections({ name: 'people' }).toArray()).length, 1);
await open('/db/shop/people');
await page.locator('.deleteButtonCollection').first().click();
await page.locator('#confirmation-input').first().fill('people');
await page.locator('#confirm-deletion-collection #delete').click();
await becomes(async () => (await database.listCollections({ name: 'people' }).toArray()).length, 0);
await shot('dropped');

assert.deepEqual(problems, []);
await browser.close();
await client.close();
console.log(`mongo-express: ${shots} screenshots`);
