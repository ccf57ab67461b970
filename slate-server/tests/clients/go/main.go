// The official Go driver: documents, cursors, indexes, transactions, bulk writes, sessions. Takes the server's URI.
// With `kill URI STOP OUT NAME` it is one of the clients of the kill test; see kill.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/version"
)

var checks int

type user struct {
	ID   int    `bson:"_id"`
	Name string `bson:"name"`
	Age  int    `bson:"age"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check[T any](name string, actual, expected T) {
	checks++
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%s: %v instead of %v", name, actual, expected))
	}
}

func main() {
	if len(os.Args) == 6 && os.Args[1] == "kill" {
		kill(os.Args[2:])
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client := must(mongo.Connect(options.Client().ApplyURI(os.Args[1]).SetCompressors([]string{"zstd", "snappy"})))
	defer client.Disconnect(ctx)
	if err := client.Ping(ctx, nil); err != nil {
		panic(err)
	}
	db := client.Database("go")
	if err := db.Drop(ctx); err != nil {
		panic(err)
	}
	documents(ctx, db)
	cursors(ctx, db)
	definitions(ctx, db)
	transactions(ctx, client, db)
	sessions(ctx, client, db)
	changes(ctx, db)
	if err := db.Drop(ctx); err != nil {
		panic(err)
	}
	fmt.Printf("Go driver %s: %d checks passed\n", version.Driver, checks)
}

func documents(ctx context.Context, db *mongo.Database) {
	users := db.Collection("users")
	var all []any
	for n := range 1000 {
		all = append(all, user{n, fmt.Sprintf("user %d", n), n % 50})
	}
	check("InsertMany", len(must(users.InsertMany(ctx, all)).InsertedIDs), 1000)
	check("CountDocuments", must(users.CountDocuments(ctx, bson.D{{"age", bson.D{{"$lt", 10}}}})), int64(200))
	check("EstimatedDocumentCount", must(users.EstimatedDocumentCount(ctx)), int64(1000))
	var found user
	if err := users.FindOne(ctx, bson.D{{"_id", 7}}).Decode(&found); err != nil {
		panic(err)
	}
	check("FindOne", found, user{7, "user 7", 7})
	check("no document", errors.Is(users.FindOne(ctx, bson.D{{"_id", -1}}).Err(), mongo.ErrNoDocuments), true)
	check("UpdateMany", must(users.UpdateMany(ctx, bson.D{{"age", 1}}, bson.D{{"$set", bson.D{{"old", false}}}})).ModifiedCount, int64(20))
	upsert := must(users.UpdateOne(ctx, bson.D{{"_id", 5000}}, bson.D{{"$set", bson.D{{"age", 1}}}}, options.UpdateOne().SetUpsert(true)))
	check("upsert", upsert.UpsertedID, any(int32(5000)))
	after := options.FindOneAndUpdate().SetReturnDocument(options.After)
	if err := users.FindOneAndUpdate(ctx, bson.D{{"_id", 5000}}, bson.D{{"$inc", bson.D{{"age", 2}}}}, after).Decode(&found); err != nil {
		panic(err)
	}
	check("FindOneAndUpdate", found.Age, 3)
	check("DeleteOne", must(users.DeleteOne(ctx, bson.D{{"_id", 5000}})).DeletedCount, int64(1))
	_, err := users.InsertOne(ctx, user{ID: 1})
	check("duplicate", mongo.IsDuplicateKeyError(err), true)
	bulk := must(users.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(user{ID: 6000}),
		mongo.NewUpdateOneModel().SetFilter(bson.D{{"_id", 6000}}).SetUpdate(bson.D{{"$set", bson.D{{"name", "x"}}}}),
		mongo.NewDeleteOneModel().SetFilter(bson.D{{"_id", 6000}}),
	}))
	check("BulkWrite", []int64{bulk.InsertedCount, bulk.ModifiedCount, bulk.DeletedCount}, []int64{1, 1, 1})
	writes := must(db.Client().BulkWrite(ctx, []mongo.ClientBulkWrite{
		{Database: "go", Collection: "a", Model: mongo.NewClientInsertOneModel().SetDocument(bson.D{{"_id", 1}})},
		{Database: "go", Collection: "b", Model: mongo.NewClientInsertOneModel().SetDocument(bson.D{{"_id", 1}})},
	}))
	check("client BulkWrite", writes.InsertedCount, int64(2))
	var ages []int
	if err := users.Distinct(ctx, "age", bson.D{}).Decode(&ages); err != nil {
		panic(err)
	}
	check("Distinct", len(ages), 50)
}

func cursors(ctx context.Context, db *mongo.Database) {
	users := db.Collection("users")
	cursor := must(users.Find(ctx, bson.D{}, options.Find().SetBatchSize(7).SetSort(bson.D{{"_id", -1}})))
	count, last := 0, 1000
	for cursor.Next(ctx) {
		var next user
		if err := cursor.Decode(&next); err != nil {
			panic(err)
		}
		if next.ID >= last {
			panic("the documents are not in their order")
		}
		count, last = count+1, next.ID
	}
	check("cursor", count, 1000)
	var groups []struct {
		ID int `bson:"_id"`
		N  int `bson:"n"`
	}
	pipeline := mongo.Pipeline{
		{{"$group", bson.D{{"_id", "$age"}, {"n", bson.D{{"$sum", 1}}}}}},
		{{"$sort", bson.D{{"_id", 1}}}},
	}
	if err := must(users.Aggregate(ctx, pipeline, options.Aggregate().SetBatchSize(3))).All(ctx, &groups); err != nil {
		panic(err)
	}
	check("Aggregate", []int{len(groups), groups[49].ID, groups[49].N}, []int{50, 49, 20})
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	slow := mongo.Pipeline{
		{{"$lookup", bson.D{{"from", "users"}, {"pipeline", bson.A{}}, {"as", "x"}}}},
		{{"$unwind", "$x"}},
		{{"$lookup", bson.D{{"from", "users"}, {"pipeline", bson.A{}}, {"as", "y"}}}},
		{{"$count", "n"}},
	}
	_, err := users.Aggregate(short, slow)
	check("a deadline ends a command", mongo.IsTimeout(err), true)
}

func definitions(ctx context.Context, db *mongo.Database) {
	users := db.Collection("users")
	name := must(users.Indexes().CreateOne(ctx, mongo.IndexModel{
		Keys: bson.D{{"name", 1}, {"age", -1}}, Options: options.Index().SetUnique(true),
	}))
	check("index", name, "name_1_age_-1")
	specifications := must(users.Indexes().ListSpecifications(ctx))
	check("indexes", len(specifications), 2)
	if err := users.Indexes().DropOne(ctx, name); err != nil {
		panic(err)
	}
	if err := db.CreateView(ctx, "young", "users", mongo.Pipeline{{{"$match", bson.D{{"age", bson.D{{"$lt", 3}}}}}}}); err != nil {
		panic(err)
	}
	check("view", must(db.Collection("young").CountDocuments(ctx, bson.D{})), int64(60))
	validator := bson.D{{"$jsonSchema", bson.D{{"required", bson.A{"name"}}}}}
	if err := db.CreateCollection(ctx, "checked", options.CreateCollection().SetValidator(validator)); err != nil {
		panic(err)
	}
	_, err := db.Collection("checked").InsertOne(ctx, bson.D{{"a", 1}})
	var refused mongo.WriteException
	check("validator", errors.As(err, &refused) && refused.WriteErrors[0].Code == 121, true)
	check("collections", len(must(db.ListCollectionNames(ctx, bson.D{}))), 5)
}

func transactions(ctx context.Context, client *mongo.Client, db *mongo.Database) {
	accounts, log := db.Collection("accounts"), client.Database("go_log").Collection("log")
	must(accounts.InsertMany(ctx, []any{bson.D{{"_id", "a"}, {"n", 100}}, bson.D{{"_id", "b"}, {"n", 0}}}))
	transfer := func(ctx context.Context) (any, error) {
		for id, amount := range map[string]int{"a": -10, "b": 10} {
			if _, err := accounts.UpdateOne(ctx, bson.D{{"_id", id}}, bson.D{{"$inc", bson.D{{"n", amount}}}}); err != nil {
				return nil, err
			}
		}
		return log.InsertOne(ctx, bson.D{{"amount", 10}})
	}
	var wait sync.WaitGroup
	for range 5 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 2 {
				session := must(client.StartSession())
				concerns := options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())
				must(session.WithTransaction(ctx, transfer, concerns))
				session.EndSession(ctx)
			}
		}()
	}
	wait.Wait()
	var account struct{ N int }
	if err := accounts.FindOne(ctx, bson.D{{"_id", "b"}}).Decode(&account); err != nil {
		panic(err)
	}
	check("transfers", account.N, 100)
	check("a log in another database", must(log.CountDocuments(ctx, bson.D{})), int64(10))
	session := must(client.StartSession())
	defer session.EndSession(ctx)
	_, err := session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		must(accounts.DeleteMany(ctx, bson.D{}))
		return nil, errors.New("roll back")
	})
	check("an error", err.Error(), "roll back")
	check("after the abort", must(accounts.CountDocuments(ctx, bson.D{})), int64(2))
	if err := client.Database("go_log").Drop(ctx); err != nil {
		panic(err)
	}
}

func sessions(ctx context.Context, client *mongo.Client, db *mongo.Database) {
	users := db.Collection("users")
	session := must(client.StartSession(options.Session().SetSnapshot(true)))
	defer session.EndSession(ctx)
	within := mongo.NewSessionContext(ctx, session)
	before := must(users.CountDocuments(within, bson.D{}))
	must(users.InsertOne(ctx, user{ID: 7000}))
	check("snapshot", must(users.CountDocuments(within, bson.D{})), before)
	check("outside of the snapshot", must(users.CountDocuments(ctx, bson.D{})), before+1)
}

func changes(ctx context.Context, db *mongo.Database) {
	watched := db.Collection("watched")
	if os.Getenv("WITHOUT_CHANGES") != "" {
		_, err := watched.Watch(ctx, mongo.Pipeline{})
		var refused mongo.CommandError
		check("change stream", errors.As(err, &refused) && refused.Code == 40573, true)
		return
	}
	stream := must(watched.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup)))
	must(watched.InsertOne(ctx, user{ID: 1, Name: "new"}))
	must(watched.UpdateOne(ctx, bson.D{{"_id", 1}}, bson.D{{"$set", bson.D{{"name", "changed"}}}}))
	type event struct {
		Operation string `bson:"operationType"`
		Document  user   `bson:"fullDocument"`
	}
	for _, operation := range []string{"insert", "update"} {
		if !stream.Next(ctx) {
			panic(stream.Err())
		}
		var seen event
		if err := stream.Decode(&seen); err != nil {
			panic(err)
		}
		check("change stream", []any{seen.Operation, seen.Document.ID}, []any{operation, 1})
	}
	token := stream.ResumeToken()
	stream.Close(ctx)
	must(watched.DeleteOne(ctx, bson.D{{"_id", 1}}))
	stream = must(watched.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token)))
	defer stream.Close(ctx)
	check("resumed change stream", stream.Next(ctx) && stream.Current.Lookup("operationType").StringValue() == "delete", true)
}
