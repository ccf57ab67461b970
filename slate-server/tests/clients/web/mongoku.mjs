// Mongoku in headless Chromium: lists, opens, filters, explains, inserts, edits, deletes, indexes, aggregates. Takes the URI of a server, the
// URL of Mongoku and a folder for screenshots. CHROMIUM names the browser.

import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';
import { MongoClient } from 'mongodb';

const [uri, mongoku, folder] = process.argv.slice(2);
const client = await MongoClient.connect(uri);
const users = client.db('shop').collection('users');
await client.db('shop').dropDatabase();
await users.insertMany([...Array(60).keys()].map((n) => ({ _id: n, name: `user ${n}`, age: n % 5, tags: ['a', `t${n % 3}`], at: new Date(0) })));
await users.createIndex({ age: 1, name: -1 });

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
const problems = [];
page.on('response', (response) => { if (response.status() >= 500) problems.push(`${response.status()} ${response.url()}`); });
let shots = 0;
const shot = async (name) => page.screenshot({ path: `${folder}/${String(++shots).padStart(2, '0')}-${name}.png` });
const shows = async (text) => page.getByText(text).first().waitFor({ timeout: 15_000 });
const open = async (path) => page.goto(`${mongoku}${path}`, { waitUntil: 'networkidle' });

// Servers, databases, collections
await open('/servers');
const server = encodeURIComponent(new URL(uri).host);
await shows(new URL(uri).host);
await shot('servers');
await open(`/servers/${server}/databases`);
await shows('shop');
await shot('databases');
await open(`/servers/${server}/databases/shop/collections`);
await shows('users');
await shot('collections');

// Documents: filter, sort, explain
const documents = `/servers/${server}/databases/shop/collections/users/documents`;
await open(documents);
await shows('user 0');
await shot('documents');
await open(`${documents}?query=${encodeURIComponent('{"age": 3}')}&sort=${encodeURIComponent('{"name": -1}')}&limit=5`);
await shows('user 8');
assert.equal(await page.getByText('user 7', { exact: false }).count(), 0);
await shot('filter');
await page.getByRole('button', { name: 'Explain' }).click();
await shows('age_1_name_-1');
await shot('explain');

// Insert, edit and delete
await open(documents);
await page.getByTitle('Update multiple documents').click();
await page.getByRole('button', { name: 'Insert Document' }).click();
await page.locator('#insert-document').fill('{ "_id": 1000, "name": "inserted", "age": 7 }');
await shot('insert');
await page.getByRole('button', { name: 'Insert', exact: true }).click();
for (let tries = 0; tries < 50 && !(await users.findOne({ _id: 1000 })); tries += 1) await page.waitForTimeout(100);
assert.equal((await users.findOne({ _id: 1000 }))?.name, 'inserted');
await open(`${documents}?query=${encodeURIComponent('{"_id": 1000}')}`);
await shows('inserted');
await page.getByTitle('Update multiple documents').click();
await page.getByPlaceholder('Update operation').fill('{ "$set": { "name": "edited" } }');
await page.getByRole('button', { name: 'Execute Update' }).click();
for (let tries = 0; tries < 50 && (await users.findOne({ _id: 1000 })).name !== 'edited'; tries += 1) await page.waitForTimeout(100);
assert.equal((await users.findOne({ _id: 1000 })).name, 'edited');
await shot('edit');
await open(`${documents}?query=${encodeURIComponent('{"_id": 1000}')}`);
await page.getByTitle('Update multiple documents').click();
await page.getByRole('button', { name: 'Check Document Count' }).click();
await page.getByPlaceholder("Type 'confirm' to enable deletion").fill('confirm');
await shot('delete');
await page.getByRole('button', { name: 'Execute Delete' }).click();
for (let tries = 0; tries < 50 && (await users.findOne({ _id: 1000 })); tries += 1) await page.waitForTimeout(100);
assert.equal(await users.countDocuments(), 60);

// Indexes, schema, aggregation
await open(`/servers/${server}/databases/shop/collections/users/indexes`);
await shows('age_1_name_-1');
await shot('indexes');
await open(`/servers/${server}/databases/shop/collections/users/schema`);
await page.waitForTimeout(1000);
await shot('schema');
const pipeline = '[{"$group": {"_id": "$age", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]';
await open(`${documents}?mode=aggregation&query=${encodeURIComponent(pipeline)}`);
await page.waitForTimeout(1000);
await shot('aggregation');
await open(`${documents}?mode=distinct&field=tags&query=%7B%7D`);
await page.waitForTimeout(1000);
await shot('distinct');

assert.deepEqual(problems, []);
await client.db('shop').dropDatabase();
await client.close();
await browser.close();
console.log(`Mongoku: passed, ${shots} screenshots`);
