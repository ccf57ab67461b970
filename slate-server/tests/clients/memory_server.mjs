// npm's mongodb-memory-server-core, unpatched, with `slate` in the place of mongod. MONGOMS_SYSTEM_BINARY names the program.

import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';
import { MongoMemoryServer, MongoMemoryReplSet } from 'mongodb-memory-server-core';

const began = Date.now();
const server = await MongoMemoryServer.create();
const ready = Date.now() - began;
const client = await MongoClient.connect(server.getUri());
const users = client.db('shop').collection('users');
await users.insertMany([{ _id: 1, name: 'Ada' }, { _id: 2, name: 'Bo' }]);
assert.deepEqual(await users.find().sort({ _id: -1 }).toArray(), [{ _id: 2, name: 'Bo' }, { _id: 1, name: 'Ada' }]);
await client.close();
await server.stop();

{
  const set = await MongoMemoryReplSet.create({ replSet: { count: 1 } });
  const member = await MongoClient.connect(set.getUri());
  const accounts = member.db('bank').collection('accounts');
  await accounts.insertMany([{ _id: 'a', n: 10 }, { _id: 'b', n: 0 }]);
  await member.withSession((session) => session.withTransaction(async () => {
    await accounts.updateOne({ _id: 'a' }, { $inc: { n: -10 } }, { session });
    await accounts.updateOne({ _id: 'b' }, { $inc: { n: 10 } }, { session });
  }));
  assert.equal((await accounts.findOne({ _id: 'b' })).n, 10);
  const failing = member.withSession((session) => session.withTransaction(async () => {
    await accounts.deleteMany({}, { session });
    throw new Error('roll back');
  }));
  await assert.rejects(failing, /roll back/);
  assert.equal(await accounts.countDocuments(), 2);
  await member.close();
  await set.stop();
}

// With users: a set is given a key file, and its first user is created from this machine.
for (const kind of [MongoMemoryServer, MongoMemoryReplSet]) {
  const auth = { enable: true, customRootName: 'root', customRootPwd: 'secret' };
  const server = await kind.create({ auth, replSet: { count: 1, auth } });
  const stranger = await MongoClient.connect(server.getUri());
  await assert.rejects(stranger.db('shop').collection('users').findOne(), /requires authentication/);
  await stranger.close();
  const root = await MongoClient.connect(server.getUri(), { auth: { username: 'root', password: 'secret' } });
  await root.db('shop').collection('users').insertOne({ _id: 1 });
  await root.close();
  await server.stop();
}
console.log(`mongodb-memory-server-core: passed; the first server was ready after ${ready} ms`);
