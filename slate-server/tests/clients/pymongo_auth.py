"""Logins, users, roles and TLS through pymongo. Takes the program slate and a folder of certificates; starts its servers itself."""

import os
import subprocess
import sys
import tempfile

import pymongo
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, ServerSelectionTimeoutError

slate, certificates = sys.argv[1:3]
checks = 0


def check(name, actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{name}: {actual!r} instead of {expected!r}"


def fails(name, code, work):
    try:
        work()
    except OperationFailure as failure:
        check(name, failure.code, code)
        return failure
    raise AssertionError(f"{name} did not fail")


def unreachable(name, **options):
    try:
        MongoClient(serverSelectionTimeoutMS=1000, **options).admin.command("ping")
    except (ServerSelectionTimeoutError, AutoReconnect):
        global checks
        checks += 1
        return
    raise AssertionError(f"{name} could connect")


class Server:
    """A server on a free port, which ends with the block."""

    def __init__(self, url, *options):
        self.arguments = [slate, "serve", url, "--port", "0", *options]

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline().strip()
        self.port = int(line.split("/?")[0].rstrip("/").rsplit(":", 1)[1])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def client(self, **options):
        return MongoClient("localhost", self.port, **options)


def user(*arguments, password):
    subprocess.run([slate, *arguments], input=password + "\n", text=True, check=True, capture_output=True)


def file(name):
    return os.path.join(certificates, name)


folder = tempfile.TemporaryDirectory()
url = f"redb:{folder.name}/data.slate"

# The first user: from this machine, in admin, once.
with Server(url, "--auth") as server:
    stranger = server.client()
    check("ping without a login", stranger.admin.command("ping")["ok"], 1.0)
    fails("find without a login", 13, lambda: stranger.shop.c.find_one())
    fails("first user in another database", 13, lambda: stranger.shop.command("createUser", "x", pwd="x", roles=[]))
    stranger.admin.command("createUser", "root", pwd="pässword", roles=["root"])
    fails("second user", 13, lambda: stranger.admin.command("createUser", "x", pwd="x", roles=["root"]))

# Users survive a restart, and the tool adds others to the file.
user(url, "user", "add", "tool", "--role", "readAnyDatabase", password="from the tool")

with Server(url, "--auth") as server:
    root = server.client(username="root", password="pässword")
    root.shop.c.insert_many([{"_id": n} for n in range(300)])
    root.other.c.insert_one({"_id": 1})
    check("the tool's user", server.client(username="tool", password="from the tool").shop.c.count_documents({}), 300)

    # Mechanisms.
    for mechanism in ("DEFAULT", "SCRAM-SHA-256", "SCRAM-SHA-1"):
        client = server.client(username="root", password="pässword", authMechanism=mechanism)
        check(mechanism, client.shop.c.count_documents({}), 300)
        client = server.client(username="root", password="wrong", authMechanism=mechanism)
        fails(f"{mechanism} with a wrong password", 18, lambda client=client: client.shop.c.find_one())
    fails("an unknown user", 18, lambda: server.client(username="nobody", password="x").shop.c.find_one())
    fails("the wrong database", 18, lambda: server.client(username="root", password="pässword", authSource="shop").shop.c.find_one())
    for mechanism, other in (("SCRAM-SHA-1", "SCRAM-SHA-256"), ("SCRAM-SHA-256", "SCRAM-SHA-1")):
        root.admin.command("createUser", mechanism, pwd="I\u00ad\u2168", roles=["read"], mechanisms=[mechanism])
        client = server.client(username=mechanism, password="I\u00ad\u2168")
        check(f"{mechanism} is negotiated", client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"][0]["user"], mechanism)
        client = server.client(username=mechanism, password="I\u00ad\u2168", authMechanism=other)
        fails(f"{other} without its keys", 18, lambda client=client: client.admin.command("dbStats"))
    # SASLprep: other characters of the same password.
    client = server.client(username="SCRAM-SHA-256", password="IIX")
    check("SASLprep", client.admin.command("dbStats")["ok"], 1.0)
    odd = "a,b=c@d:e/ü"
    root.shop.command("createUser", odd, pwd=odd, roles=["read"])
    check("odd names", server.client(username=odd, password=odd, authSource="shop").shop.c.count_documents({}), 300)

    # Roles.
    shop = root.shop
    shop.command("createUser", "ada", pwd="pw", roles=["readWrite"], customData={"n": 1})
    fails("the same user", 51003, lambda: shop.command("createUser", "ada", pwd="pw", roles=[]))
    ada = server.client(username="ada", password="pw", authSource="shop")
    ada.shop.c.update_one({"_id": 1}, {"$set": {"a": 1}})
    check("databases", ada.list_database_names(), ["shop"])
    check("collections", ada.shop.list_collection_names(), ["c"])
    fails("another database", 13, lambda: ada.other.c.find_one())
    fails("$out elsewhere", 13, lambda: list(ada.shop.c.aggregate([{"$out": {"db": "other", "coll": "d"}}])))
    fails("$lookup of the users", 13, lambda: list(ada.admin.c.aggregate([{"$lookup": {"from": "system.users", "as": "u", "pipeline": []}}])))
    fails("the users", 13, lambda: ada.admin["system.users"].find_one())
    elsewhere = {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "other.c"}]}
    fails("a bulk write elsewhere", 13, lambda: ada.admin.command(elsewhere))
    check("a bulk write", ada.bulk_write([pymongo.DeleteOne(namespace="shop.c", filter={"_id": "none"})]).deleted_count, 0)
    fails("an index of another database", 13, lambda: ada.other.c.create_index("a"))
    check("an index", ada.shop.c.create_index("a"), "a_1")
    fails("serverStatus", 13, lambda: ada.admin.command("serverStatus"))
    fails("createUser", 13, lambda: ada.shop.command("createUser", "x", pwd="x", roles=[]))
    check("own information", ada.shop.command("usersInfo", "ada")["users"][0]["customData"], {"n": 1})
    fails("others' information", 13, lambda: ada.shop.command("usersInfo", "other"))
    cursor = ada.shop.c.find(batch_size=10)
    next(cursor)
    fails("another's cursor", 13, lambda: root.shop.command({"getMore": cursor.cursor_id, "collection": "c"}))
    check("the rest of the cursor", sum(1 for _ in cursor), 299)
    with ada.start_session() as session:
        with session.start_transaction():
            ada.shop.c.insert_one({"_id": "t"}, session=session)
    check("a transaction", ada.shop.c.count_documents({"_id": "t"}), 1)

    # Changes of users hold at once.
    shop.command("revokeRolesFromUser", "ada", roles=["readWrite"])
    fails("a revoked role", 13, lambda: ada.shop.c.find_one())
    shop.command("grantRolesToUser", "ada", roles=[{"role": "read", "db": "other"}])
    check("a granted role", ada.other.c.count_documents({}), 1)
    shop.command("updateUser", "ada", pwd="new", roles=["dbOwner"])
    fails("the old password", 18, lambda: server.client(username="ada", password="pw", authSource="shop").shop.c.find_one())
    owner = server.client(username="ada", password="new", authSource="shop")
    owner.shop.command("createUser", "bob", pwd="pw", roles=["read"])
    fails("a role of another database", 13, lambda: owner.shop.command("grantRolesToUser", "bob", roles=[{"role": "root", "db": "admin"}]))
    check("users of a database", [user["user"] for user in owner.shop.command("usersInfo")["users"]], [odd, "ada", "bob"])
    check("roles", len(owner.shop.command("rolesInfo", 1, showBuiltinRoles=True)["roles"]), 5)
    owner.shop.command("dropUser", "bob")
    fails("a dropped user", 11, lambda: owner.shop.command("dropUser", "bob"))
    check("all users of a database", shop.command("dropAllUsersFromDatabase")["n"], 2)
    fails("a session of a dropped user", 13, lambda: owner.shop.c.find_one())
    status = root.admin.command("connectionStatus", showPrivileges=True)["authInfo"]
    check("status", status["authenticatedUserRoles"], [{"role": "root", "db": "admin"}])

    # Too many failures.
    for _ in range(12):
        fails("a wrong password", 18, lambda: server.client(username="guess", password="x").admin.command("dbStats"))
    failure = fails("one more", 18, lambda: server.client(username="guess", password="x").admin.command("dbStats"))
    check("the limit is named", "too often" in str(failure), True)
    check("others log in", root.shop.c.count_documents({}), 301)

# TLS.
tls = ["--tls-certificate", file("server.pem"), "--tls-key", file("server.key")]
with Server("memory:", *tls) as server:
    client = server.client(tls=True, tlsCAFile=file("ca.pem"))
    client.shop.c.insert_many([{"text": "x" * 100_000} for _ in range(50)])
    check("TLS", sum(len(document["text"]) for document in client.shop.c.find()), 5_000_000)
    unreachable("a client without TLS", host="localhost", port=server.port)
    unreachable("a client that does not know the authority", host="localhost", port=server.port, tls=True)
with Server("memory:", *tls, "--tls-ca", file("ca.pem")) as server:
    trusted = {"tls": True, "tlsCAFile": file("ca.pem")}
    check("a client's certificate", server.client(**trusted, tlsCertificateKeyFile=file("client-and-key.pem")).admin.command("ping")["ok"], 1.0)
    unreachable("no certificate", host="localhost", port=server.port, **trusted)
    unreachable("a stranger's certificate", host="localhost", port=server.port, **trusted, tlsCertificateKeyFile=file("stranger-and-key.pem"))
x509 = f"redb:{folder.name}/x509.slate"
subject = "CN=ada,OU=clients,O=Slate\\, tests,C=DE"
user(x509, "user", "add", "--certificate", subject, "--role", "readWrite@shop", password="")
with Server(x509, "--auth", *tls, "--tls-ca", file("ca.pem"), "--tls-optional-client-certificates") as server:
    client = server.client(**trusted, tlsCertificateKeyFile=file("client-and-key.pem"), authMechanism="MONGODB-X509")
    client.shop.c.insert_one({"_id": 1})
    check("a certificate as a login", client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"], [{"user": subject, "db": "$external"}])
    fails("its roles", 13, lambda: client.other.c.find_one())
    fails("no certificate", 18, lambda: server.client(**trusted, authMechanism="MONGODB-X509").shop.c.find_one())
    fails("no login", 13, lambda: server.client(**trusted).shop.c.find_one())

print(f"pymongo {pymongo.version}, users and TLS: {checks} checks passed")
