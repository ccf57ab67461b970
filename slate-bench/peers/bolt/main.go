// The store benchmark on bolt: byodb's row alone, in which bolt is compared. It writes a report as the other programs do.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	items      = 40_000
	longest    = 1_000
	iterations = 200
	samples    = 5
)

var bucket = []byte("items")

// As the reports of slate-bench-harness have it.
type report struct {
	Bench    string    `json:"bench"`
	About    about     `json:"about"`
	Machine  machine   `json:"machine"`
	Date     string    `json:"date"`
	Command  []string  `json:"command"`
	Seed     uint64    `json:"seed"`
	Sections []section `json:"sections"`
}

type about struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Settings string `json:"settings"`
}

type section struct {
	Title string `json:"title"`
	Rows  []row  `json:"rows"`
}

type row struct {
	Name    string  `json:"name"`
	Verdict any     `json:"verdict"`
	Samples []int64 `json:"samples,omitempty"`
	Items   uint64  `json:"items"`
	Note    string  `json:"note,omitempty"`
}

// What is measured: how many readers, how often each goes through everything, and whether a writer spins beside them.
type work struct {
	name       string
	readers    int
	iterations int
	writer     func(*bolt.DB, <-chan struct{}) error
}

// What rows are wanted: all, where there are no patterns.
type patterns []string

func (all *patterns) String() string { return strings.Join(*all, ", ") }

func (all *patterns) Set(pattern string) error {
	*all = append(*all, strings.ToLower(pattern))
	return nil
}

func (all patterns) want(section, name string) bool {
	for _, pattern := range all {
		if strings.Contains(section, pattern) || strings.Contains(name, pattern) {
			return true
		}
	}
	return len(all) == 0
}

func main() {
	out := flag.String("json", "", "write the report there")
	only := patterns{}
	flag.Var(&only, "only", "only rows whose section or name has this in it; several: any of them")
	flag.String("clock", "wall", "for the sake of the other programs: it is always the one on the wall")
	flag.String("records", "", "for the sake of the other programs: byodb's table has a number of its own")
	seed := flag.Uint64("seed", 42, "the seed of the data")
	runs := flag.Int("runs", samples, "how often each row is measured")
	folder := flag.String("folder", os.TempDir(), "where the database is put")
	flag.Parse()
	if err := run(*out, only, *seed, min(*runs, samples), *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(out string, only patterns, seed uint64, runs int, folder string) error {
	place, err := os.MkdirTemp(folder, "slate-store-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(place)
	db, err := bolt.Open(filepath.Join(place, "data.bolt"), 0o600, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	stored, first, err := fill(db, seed)
	if err != nil {
		return err
	}
	spin := func(db *bolt.DB, over <-chan struct{}) error { return spin(db, first, over) }
	all := []work{
		{"scanned by one reader", 1, iterations / 10, nil},
		{"scanned by 4 readers", 4, iterations, nil},
		{"scanned by 4 readers beside a spinning writer", 4, iterations, spin},
	}
	found := section{Title: "byodb"}
	for _, work := range all {
		if only.want("byodb", work.name) {
			found.Rows = append(found.Rows, measure(db, work, stored, runs))
		}
	}
	wrong := false
	for _, row := range found.Rows {
		if row.Verdict != "right" {
			wrong = true
			fmt.Printf("%s: %v\n", row.Name, row.Verdict)
			continue
		}
		times := append([]int64(nil), row.Samples...)
		sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
		fmt.Printf("%s: %.1f ns an item\n", row.Name, float64(times[len(times)/2])/float64(row.Items))
	}
	if out != "" {
		written, err := json.MarshalIndent(reported(found, seed), "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(out, append(written, '\n'), 0o644); err != nil {
			return err
		}
	}
	if wrong {
		os.Exit(1)
	}
	return nil
}

func reported(found section, seed uint64) report {
	return report{
		Bench:    "slate-store-bench",
		About:    about{"bolt", "bbolt 1.4", "default settings"},
		Machine:  here(),
		Date:     time.Now().UTC().Format(time.RFC3339),
		Command:  append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...),
		Seed:     seed,
		Sections: []section{found},
	}
}

// Puts items as long as those of the other programs, and tells how many there are and the first key.
func fill(db *bolt.DB, seed uint64) (stored uint64, first []byte, err error) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	random := rand.New(rand.NewPCG(seed, seed))
	word := func() []byte {
		word := make([]byte, 1+random.IntN(longest))
		for place := range word {
			word[place] = letters[random.IntN(len(letters))]
		}
		return word
	}
	err = db.Update(func(tx *bolt.Tx) error {
		entries, err := tx.CreateBucket(bucket)
		if err != nil {
			return err
		}
		for range items {
			if err := entries.Put(word(), word()); err != nil {
				return err
			}
		}
		cursor := entries.Cursor()
		for key, _ := cursor.First(); key != nil; key, _ = cursor.Next() {
			if stored == 0 {
				first = append(first, key...)
			}
			stored++
		}
		return nil
	})
	return stored, first, err
}

func measure(db *bolt.DB, work work, stored uint64, runs int) row {
	found := row{Name: work.name, Verdict: "right", Items: stored * uint64(work.iterations), Note: "per item"}
	expected := stored * uint64(work.readers) * uint64(work.iterations)
	for sample := 0; sample <= runs; sample++ {
		seen, elapsed, err := once(db, work)
		if err == nil && seen != expected {
			err = fmt.Errorf("answers %d, not %d", seen, expected)
		}
		if err != nil {
			return row{Name: work.name, Verdict: map[string]string{"wrong": err.Error()}}
		}
		// The first is not counted.
		if sample > 0 {
			found.Samples = append(found.Samples, elapsed.Nanoseconds())
		}
	}
	return found
}

func once(db *bolt.DB, work work) (seen uint64, elapsed time.Duration, err error) {
	over, writer := make(chan struct{}), make(chan error, 1)
	if work.writer != nil {
		go func() { writer <- work.writer(db, over) }()
	} else {
		writer <- nil
	}
	counts, failures := make([]uint64, work.readers), make([]error, work.readers)
	var readers sync.WaitGroup
	begin := time.Now()
	for reader := range work.readers {
		readers.Add(1)
		go func() {
			defer readers.Done()
			runtime.LockOSThread()
			counts[reader], failures[reader] = scan(db, work.iterations)
		}()
	}
	readers.Wait()
	elapsed = time.Since(begin)
	close(over)
	for _, count := range counts {
		seen += count
	}
	return seen, elapsed, errors.Join(append(failures, <-writer)...)
}

func scan(db *bolt.DB, iterations int) (seen uint64, err error) {
	for range iterations {
		err := db.View(func(tx *bolt.Tx) error {
			cursor := tx.Bucket(bucket).Cursor()
			for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
				_ = value
				seen++
			}
			return nil
		})
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

var errRolledBack = errors.New("rolled back")

// Puts one key over and over in a transaction that is rolled back.
func spin(db *bolt.DB, key []byte, over <-chan struct{}) error {
	runtime.LockOSThread()
	value := make([]byte, 100)
	err := db.Update(func(tx *bolt.Tx) error {
		entries := tx.Bucket(bucket)
		for {
			select {
			case <-over:
				return errRolledBack
			default:
				if err := entries.Put(key, value); err != nil {
					return err
				}
			}
		}
	})
	if errors.Is(err, errRolledBack) {
		return nil
	}
	return err
}

type machine struct {
	Processor string  `json:"processor"`
	Cores     uint64  `json:"cores"`
	Memory    *uint64 `json:"memory"`
	System    string  `json:"system"`
}

func here() machine {
	system := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	found := machine{"a processor without a name", uint64(runtime.NumCPU()), nil, runtime.GOOS + " " + runtime.GOARCH}
	if name, is := system[runtime.GOARCH]; is {
		found.System = runtime.GOOS + " " + name
	}
	described, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(described)) {
		if name, value, is := strings.Cut(line, ":"); is && strings.TrimSpace(name) == "model name" {
			found.Processor = strings.TrimSpace(value)
			break
		}
	}
	return found
}
