"""mongoengine: documents, references, unique fields, queries, aggregation, cascading deletes. Takes the server's URI."""

import sys

import mongoengine as me
from mongoengine import errors

checks = 0


def check(name, actual, expected):
    global checks
    checks += 1
    assert actual == expected, f"{name}: {actual!r} instead of {expected!r}"


def fails(name, error, work):
    global checks
    checks += 1
    try:
        work()
    except error as failure:
        return failure
    raise AssertionError(f"{name} did not fail")


me.connect("mongoengine", host=sys.argv[1], uuidRepresentation="standard")


class Author(me.Document):
    name = me.StringField(required=True)
    email = me.EmailField(unique=True, sparse=True)
    born = me.IntField(min_value=1000)


class Comment(me.EmbeddedDocument):
    text = me.StringField()
    stars = me.IntField(choices=range(6))


class Page(me.Document):
    title = me.StringField(required=True)
    author = me.ReferenceField(Author, reverse_delete_rule=me.CASCADE)
    tags = me.ListField(me.StringField())
    comments = me.EmbeddedDocumentListField(Comment)
    data = me.DictField()
    number = me.SequenceField()
    meta = {"indexes": ["title", ("author", "-title"), {"fields": ["tags"], "sparse": True}], "allow_inheritance": True}


class LongPage(Page):
    length = me.DecimalField(precision=2)


Author.drop_collection()
Page.drop_collection()
me.get_db()["mongoengine.counters"].drop()
ada = Author(name="Ada", email="ada@example.org", born=1815).save()
bo = Author(name="Bo", email="bo@example.org").save()
fails("validation", errors.ValidationError, lambda: Author(name="x", born=1).save())
fails("unique", errors.NotUniqueError, lambda: Author(name="Eve", email="ada@example.org").save())
for n in range(20):
    Page(title=f"Page {n:02}", author=ada if n % 2 else bo, tags=[f"t{n % 3}"], comments=[Comment(text="x", stars=n % 6)]).save()
LongPage(title="Long", author=ada, length="12.50").save()
check("sequence", Page.objects(title="Page 19").first().number, 20)
check("reference", Page.objects(title="Page 01").get().author.name, "Ada")
check("select_related", {page.author.name for page in Page.objects.select_related()}, {"Ada", "Bo"})
check("queries", Page.objects(tags__in=["t1"], comments__stars__gte=3).count(), 3)
check("Q", Page.objects(me.Q(title="Page 01") | me.Q(title__startswith="Page 1")).count(), 11)
check("order and slice", [page.title for page in Page.objects(author=bo).order_by("-title")[1:3]], ["Page 16", "Page 14"])
check("inheritance", [type(page) for page in Page.objects(title="Long")], [LongPage])
check("update", Page.objects(author=ada).update(push__tags="new", set__data={"a": 1}), 11)
check("atomic", Page.objects(title="Page 01").modify(new=True, inc__data__a=2).data["a"], 3)
check("upsert", Author.objects(name="New").upsert_one(set__born=2000).born, 2000)
check("only", Page.objects.only("title").first().tags, [])
check("item frequencies", Page.objects.distinct("tags"), ["new", "t0", "t1", "t2"])
grouped = Page.objects.aggregate([{"$group": {"_id": "$author", "n": {"$sum": 1}}}, {"$sort": {"n": 1}}])
check("aggregate", [group["n"] for group in grouped], [10, 11])
check("sum", Page.objects.sum("number"), 231)
check("explain", "queryPlanner" in Page.objects(title="Long").explain(), True)
check("indexes", len(Page.list_indexes()) >= 4, True)
ada.delete()
check("cascade", Page.objects.count(), 10)
me.get_connection().drop_database("mongoengine")
me.disconnect()
print(f"mongoengine {me.__version__}: {checks} checks passed")
