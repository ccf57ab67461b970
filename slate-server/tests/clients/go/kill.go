package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// These are the numbers of kill_test.py.
const (
	accounts = 200
	threads  = 32
	tokens   = 100
)

// told is what the server has acknowledged.
type told struct {
	Insert   []string `json:"insert"`
	Count    []string `json:"count"`
	Transfer []string `json:"transfer"`
	Unknown  int      `json:"unknown"`
}

// kill writes from 32 goroutines until the file `stop` exists, as kill_test.py does from threads.
func kill(arguments []string) {
	uri, stop, out, name := arguments[0], arguments[1], arguments[2], arguments[3]
	client := must(mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(30 * time.Second).
		SetHeartbeatInterval(500 * time.Millisecond).SetMaxPoolSize(threads)))
	var all told
	var lock sync.Mutex
	var wait sync.WaitGroup
	for n := range threads {
		wait.Add(1)
		go func() {
			defer wait.Done()
			own := write(client, fmt.Sprintf("%s%d", name, n), stop)
			lock.Lock()
			defer lock.Unlock()
			all.Insert = append(all.Insert, own.Insert...)
			all.Count = append(all.Count, own.Count...)
			all.Transfer = append(all.Transfer, own.Transfer...)
			all.Unknown += own.Unknown
		}()
	}
	wait.Wait()
	if err := os.WriteFile(out, must(json.Marshal(all)), 0o600); err != nil {
		panic(err)
	}
}

func write(client *mongo.Client, name, stop string) told {
	db := client.Database("kill")
	var own told
	for attempt := 0; ; attempt++ {
		if _, err := os.Stat(stop); err == nil {
			return own
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		token := fmt.Sprintf("%s-%d", name, attempt)
		var err error
		var list *[]string
		switch attempt % 3 {
		case 0:
			list = &own.Insert
			_, err = db.Collection("inserts").InsertOne(ctx, bson.D{{"_id", token}})
		case 1:
			list = &own.Count
			counter := fmt.Sprintf("%s/%d", name, attempt/(3*tokens))
			update := bson.D{{"$inc", bson.D{{"n", 1}}}, {"$push", bson.D{{"tokens", token}}}}
			_, err = db.Collection("counters").UpdateOne(ctx, bson.D{{"_id", counter}}, update, options.UpdateOne().SetUpsert(true))
		default:
			list = &own.Transfer
			err = transfer(ctx, client, token)
		}
		cancel()
		if err != nil {
			own.Unknown++
		} else {
			*list = append(*list, token)
		}
	}
}

func transfer(ctx context.Context, client *mongo.Client, token string) error {
	db := client.Database("kill")
	from := rand.IntN(accounts)
	to := (from + 1 + rand.IntN(accounts-1)) % accounts
	session, err := client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx)
	concerns := options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		for id, amount := range map[int]int{from: -1, to: 1} {
			if _, err := db.Collection("accounts").UpdateOne(ctx, bson.D{{"_id", id}}, bson.D{{"$inc", bson.D{{"n", amount}}}}); err != nil {
				return nil, err
			}
		}
		return db.Collection("log").InsertOne(ctx, bson.D{{"token", token}, {"from", from}, {"to", to}})
	}, concerns)
	return err
}
