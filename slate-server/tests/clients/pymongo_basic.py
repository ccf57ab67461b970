"""CRUD, cursors, sessions, transactions and retryable writes through pymongo. Takes the server's URI."""

import sys
import threading

import pymongo
from pymongo import MongoClient, ReturnDocument
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

uri = sys.argv[1]
checks = 0


def check(name, actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{name}: {actual!r} instead of {expected!r}"


def fails(name, error, work):
    try:
        work()
    except error as failure:
        global checks
        checks += 1
        return failure
    raise AssertionError(f"{name} did not fail")


client = MongoClient(uri)
check("topology", client.admin.command("hello")["setName"], "slate")
check("primary", client.is_primary, True)
for name in ("crud", "other"):
    client.drop_database(name)
db = client.crud
users = db.users

# CRUD
result = users.insert_many([{"_id": n, "name": f"user {n}", "age": n % 50} for n in range(1000)])
check("insert_many", len(result.inserted_ids), 1000)
check("count", users.count_documents({"age": {"$lt": 10}}), 200)
check("estimated count", users.estimated_document_count(), 1000)
check("find_one", users.find_one({"_id": 7})["name"], "user 7")
check("update_many", users.update_many({"age": 1}, {"$set": {"old": False}}).modified_count, 20)
check("upsert", users.update_one({"_id": "new"}, {"$set": {"age": 1}}, upsert=True).upserted_id, "new")
check("replace", users.replace_one({"_id": "new"}, {"age": 2}).modified_count, 1)
check("find_one_and_update", users.find_one_and_update({"_id": "new"}, {"$inc": {"age": 1}}, return_document=ReturnDocument.AFTER)["age"], 3)
check("find_one_and_delete", users.find_one_and_delete({"_id": "new"})["age"], 3)
check("delete_many", users.delete_many({"age": 49}).deleted_count, 20)
check("distinct", len(users.distinct("age")), 49)
error = fails("duplicate", DuplicateKeyError, lambda: users.insert_one({"_id": 1}))
check("duplicate key", error.details["keyValue"], {"_id": 1})
check("namespace in the message", "crud.users" in str(error), True)
error = fails("bulk", BulkWriteError, lambda: users.insert_many([{"_id": 1}, {"_id": 5000}], ordered=False))
check("the rest of an unordered bulk", users.count_documents({"_id": 5000}), 1)
requests = [pymongo.InsertOne({"_id": 6000}), pymongo.UpdateOne({"_id": 6000}, {"$set": {"a": 1}}), pymongo.DeleteOne({"_id": 6000})]
check("bulk_write", users.bulk_write(requests).bulk_api_result["nRemoved"], 1)
models = [pymongo.InsertOne(namespace="other.a", document={"_id": 1}), pymongo.InsertOne(namespace="crud.b", document={"_id": 1})]
check("client bulk write", client.bulk_write(models).inserted_count, 2)

# Cursors
check("cursor in batches", sum(1 for _ in users.find(batch_size=7)), 981)
check("aggregate in batches", sum(1 for _ in users.aggregate([{"$match": {}}], batchSize=7)), 981)
cursor = users.find(batch_size=2)
next(cursor)
cursor.close()
check("sort and limit", [user["_id"] for user in users.find({"age": 3}).sort("_id", -1).limit(2)], [953, 903])
check("exhaust", sum(1 for _ in users.find(cursor_type=pymongo.CursorType.EXHAUST, batch_size=100)), 981)

# Definitions
check("index", users.create_index([("age", 1), ("name", -1)]), "age_1_name_-1")
check("indexes", sorted(users.index_information()), ["_id_", "age_1_name_-1"])
check("plan", users.find({"age": 5}).explain()["queryPlanner"]["winningPlan"]["inputStage"]["stage"], "IXSCAN")
db.create_collection("young", viewOn="users", pipeline=[{"$match": {"age": {"$lt": 3}}}])
check("view", db.young.count_documents({}), 60)
check("collections", sorted(db.list_collection_names()), ["b", "users", "young"])
check("databases", {"crud", "other"} <= set(client.list_database_names()), True)
db.b.rename("c")
check("rename", sorted(db.list_collection_names()), ["c", "users", "young"])
list(users.aggregate([{"$group": {"_id": "$age"}}, {"$out": {"db": "other", "coll": "ages"}}]))
check("$out into another database", client.other.ages.count_documents({}), 50)
check("stats", db.command("dbStats")["collections"] >= 2, True)
check("validate", db.validate_collection("users")["valid"], True)

# Transactions
accounts = db.accounts
accounts.insert_many([{"_id": "a", "n": 100}, {"_id": "b", "n": 0}])


def transfer(session):
    accounts.update_one({"_id": "a"}, {"$inc": {"n": -10}}, session=session)
    accounts.update_one({"_id": "b"}, {"$inc": {"n": 10}}, session=session)
    client.other.log.insert_one({"amount": 10}, session=session)


def transfers():
    for _ in range(5):
        with client.start_session() as session:
            session.with_transaction(transfer, read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority"))


threads = [threading.Thread(target=transfers) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
check("transfers", [account["n"] for account in accounts.find().sort("_id")], [0, 100])
check("a log in another database", client.other.log.count_documents({}), 10)
with client.start_session() as session:
    session.start_transaction()
    accounts.delete_many({}, session=session)
    check("in the transaction", accounts.count_documents({}, session=session), 0)
    session.abort_transaction()
check("after the abort", accounts.count_documents({}), 2)
with client.start_session() as session:
    session.start_transaction()
    accounts.insert_one({"_id": "c"}, session=session)
    error = fails("duplicate in a transaction", DuplicateKeyError, lambda: accounts.insert_one({"_id": "a"}, session=session))
    error = fails("commit of an aborted one", OperationFailure, session.commit_transaction)
    check("its code", error.code, 251)

# Snapshots and causal consistency
with client.start_session(snapshot=True) as session:
    check("snapshot", accounts.count_documents({}, session=session), 2)
    accounts.insert_one({"_id": "d"})
    check("the same snapshot", accounts.count_documents({}, session=session), 2)
with client.start_session(causal_consistency=True) as session:
    accounts.insert_one({"_id": "e"}, session=session)
    check("own write", accounts.count_documents({}, session=session), 4)

# Compression
for compressor in ("zlib", "snappy", "zstd"):
    try:
        compressed = MongoClient(uri, compressors=compressor)
        compressed.compressed.drop_collection("c")
        compressed.compressed.c.insert_many([{"text": "x" * 10_000} for _ in range(100)])
        check(compressor, len(list(compressed.compressed.c.find())), 100)
        compressed.close()
    except ImportError:
        print(f"{compressor}: its package is not installed")

for name in ("crud", "other", "compressed"):
    client.drop_database(name)
client.close()
print(f"pymongo {pymongo.version}: {checks} checks passed")
