// mongoose: schemas, validators, unique indexes, populate, middleware, transactions, cursors. Takes the server's URI.

import assert from 'node:assert/strict';
import mongoose from 'mongoose';

let checks = 0;
const equal = (name, actual, expected) => {
  assert.deepEqual(actual, expected, name);
  checks += 1;
};
const rejects = async (name, work, check) => {
  await assert.rejects(work, check, name);
  checks += 1;
};

await mongoose.connect(process.argv[2], { dbName: 'mongoose' });
await mongoose.connection.dropDatabase();

const Author = mongoose.model('Author', new mongoose.Schema({
  name: { type: String, required: true, trim: true },
  email: { type: String, unique: true, sparse: true, lowercase: true },
  born: { type: Number, min: 1000 },
}, { timestamps: true }));
const bookSchema = new mongoose.Schema({
  title: { type: String, required: true, index: true },
  author: { type: mongoose.Schema.Types.ObjectId, ref: 'Author' },
  tags: [String],
  price: mongoose.Schema.Types.Decimal128,
  reviews: [{ stars: Number, by: { type: mongoose.Schema.Types.ObjectId, ref: 'Author' } }],
  data: { type: Map, of: Number },
});
bookSchema.index({ author: 1, title: 1 }, { unique: true });
bookSchema.virtual('shown').get(function () { return `${this.title} (${this.tags.join(', ')})`; });
bookSchema.pre('save', function () { this.tags = [...new Set(this.tags)]; });
const Book = mongoose.model('Book', bookSchema);
Author.schema.virtual('books', { ref: 'Book', localField: '_id', foreignField: 'author' });
await Promise.all([Author.init(), Book.init()]);

// Documents, validators, unique indexes
const ada = await Author.create({ name: ' Ada ', email: 'ADA@example.org', born: 1815 });
equal('setters', [ada.name, ada.email, ada.createdAt instanceof Date], ['Ada', 'ada@example.org', true]);
const bo = await Author.create({ name: 'Bo', email: 'bo@example.org' });
await rejects('validator', Author.create({ born: 3 }), (error) => error.errors.name && error.errors.born.kind === 'min');
await rejects('unique', Author.create({ name: 'Eve', email: 'ada@example.org' }), (error) => error.code === 11000 && error.keyValue.email === 'ada@example.org');
const notes = await Book.create({ title: 'Notes', author: ada, tags: ['a', 'b', 'a'], price: '9.95', reviews: [{ stars: 5, by: bo }], data: { pages: 66 } });
equal('middleware', [notes.shown, notes.data.get('pages'), notes.price.toString()], ['Notes (a, b)', 66, '9.95']);
await Book.insertMany([...Array(50).keys()].map((n) => ({ title: `Book ${n}`, author: n % 2 ? ada : bo, tags: [`t${n % 5}`] })));
await rejects('compound unique', Book.create({ title: 'Notes', author: ada }), (error) => error.code === 11000);
equal('indexes', (await Book.collection.indexes()).map((index) => index.name).sort(), ['_id_', 'author_1_title_1', 'title_1']);

// Queries and populate
const populated = await Book.findOne({ title: 'Notes' }).populate('author', 'name').populate('reviews.by');
equal('populate', [populated.author.name, populated.author.email, populated.reviews[0].by.name], ['Ada', undefined, 'Bo']);
const withBooks = await Author.findOne({ name: 'Bo' }).populate({ path: 'books', options: { sort: { title: 1 }, limit: 3 } });
equal('virtual populate', withBooks.books.map((book) => book.title), ['Book 0', 'Book 10', 'Book 12']);
equal('where', await Book.countDocuments().where('tags').in(['t1', 't2']), 20);
equal('lean', (await Book.find({ title: /^Book 1/ }).sort('-title').limit(2).lean()).map((book) => book.title), ['Book 19', 'Book 18']);
let seen = 0;
for await (const book of Book.find().cursor({ batchSize: 7 })) seen += book.title ? 1 : 0;
equal('cursor', seen, 51);
const grouped = await Book.aggregate([{ $unwind: '$tags' }, { $sortByCount: '$tags' }, { $limit: 2 }]);
equal('aggregate', grouped.map((group) => group.count), [10, 10]);
equal('updateOne', (await Book.updateOne({ title: 'Notes' }, { $push: { tags: 'c' } }, { runValidators: true })).modifiedCount, 1);
equal('findOneAndUpdate', (await Book.findOneAndUpdate({ title: 'Notes' }, { 'data.pages': 67 }, { returnDocument: 'after' })).data.get('pages'), 67);
equal('upsert', (await Author.findOneAndUpdate({ name: 'New' }, { born: 2000 }, { upsert: true, returnDocument: 'after' })).born, 2000);
const version = await Book.findOne({ title: 'Notes' });
await Book.updateOne({ _id: version._id }, { $set: { tags: [] }, $inc: { __v: 1 } });
version.tags.set(0, 'changed');
await rejects('versioned arrays', version.save(), mongoose.Error.VersionError);
equal('bulkWrite', (await Book.bulkWrite([{ deleteMany: { filter: { tags: 't4' } } }])).deletedCount, 10);
equal('distinct', (await Book.distinct('tags')).sort(), ['t0', 't1', 't2', 't3']);

// Transactions
await mongoose.connection.transaction(async (session) => {
  await Author.create([{ name: 'Within', email: 'within@example.org' }], { session });
  equal('outside of the transaction', await Author.countDocuments({ name: 'Within' }), 0);
});
equal('after the commit', await Author.countDocuments({ name: 'Within' }), 1);
const undone = new Author({ name: 'Undone', email: 'undone@example.org' });
await rejects('rolled back', mongoose.connection.transaction(async (session) => {
  await undone.save({ session });
  throw new Error('roll back');
}), /roll back/);
equal('after the rollback', [await Author.countDocuments({ name: 'Undone' }), undone.isNew], [0, true]);

// Discriminators, sub-documents, explain
const Shape = mongoose.model('Shape', new mongoose.Schema({ at: [Number] }, { discriminatorKey: 'kind' }));
const Circle = Shape.discriminator('Circle', new mongoose.Schema({ radius: Number }));
await Circle.create({ at: [0, 1], radius: 2 });
equal('discriminator', (await Shape.findOne()).radius, 2);
const explained = await Book.find({ title: 'Notes' }).explain('executionStats');
equal('explain', [explained.executionStats.nReturned, explained.queryPlanner.winningPlan.inputStage.indexName], [1, 'title_1']);

// Change streams, which a store without a log of changes refuses by name
if (process.env.WITHOUT_CHANGES) {
  await rejects('change stream', Author.collection.watch().next(), (error) => error.code === 40573);
} else {
  const stream = Author.watch([{ $match: { operationType: { $in: ['insert', 'update'] } } }], { fullDocument: 'updateLookup' });
  const changes = [];
  stream.on('change', (change) => changes.push([change.operationType, change.fullDocument.name]));
  await new Promise((resolve) => { stream.once('ready', resolve); });
  await new Promise((resolve) => { setTimeout(resolve, 300); });
  const watched = await Author.create({ name: 'Watched', email: 'watched@example.org' });
  await Author.updateOne({ _id: watched._id }, { name: 'Seen' });
  for (let tries = 0; tries < 100 && changes.length < 2; tries += 1) await new Promise((resolve) => { setTimeout(resolve, 50); });
  equal('change stream', changes, [['insert', 'Watched'], ['update', 'Seen']]);
  await stream.close();
}

await mongoose.connection.dropDatabase();
await mongoose.disconnect();
console.log(`mongoose ${mongoose.version}: ${checks} checks passed`);
