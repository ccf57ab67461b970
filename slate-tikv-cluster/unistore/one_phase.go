// Commits in one phase, as TiKV makes them: no snapshot changes after it was read. cluster.sh adds this file to the copy of unistore's package
// tikv, and the calls of its functions.
//
// unistore takes the timestamp of such a commit from the placement driver before it writes. A read at a later timestamp that arrives in between
// would miss the commit, and the same read would find it afterwards. TiKV has locks of the keys in memory meanwhile; here reads wait.
package tikv

import (
	"bytes"
	"sync"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
)

type onePhaseCommit struct {
	keys [][]byte
	done chan struct{}
}

var onePhase = struct {
	sync.Mutex
	running map[*onePhaseCommit]struct{}
}{running: make(map[*onePhaseCommit]struct{})}

// beginOnePhase is called before the commit has its timestamp, and the returned function when it was applied or has failed.
func beginOnePhase(mutations []*kvrpcpb.Mutation) func() {
	commit := &onePhaseCommit{done: make(chan struct{})}
	for _, mutation := range mutations {
		commit.keys = append(commit.keys, mutation.Key)
	}
	onePhase.Lock()
	onePhase.running[commit] = struct{}{}
	onePhase.Unlock()
	return func() {
		onePhase.Lock()
		delete(onePhase.running, commit)
		onePhase.Unlock()
		close(commit.done)
	}
}

// awaitOnePhase waits for the running commits that write a key which is read. It is called before locks are looked for.
func awaitOnePhase(isRead func(key []byte) bool) {
	var commits []*onePhaseCommit
	onePhase.Lock()
	for commit := range onePhase.running {
		for _, key := range commit.keys {
			if isRead(key) {
				commits = append(commits, commit)
				break
			}
		}
	}
	onePhase.Unlock()
	for _, commit := range commits {
		<-commit.done
	}
}

func awaitOnePhaseOf(keys [][]byte) {
	awaitOnePhase(func(written []byte) bool {
		for _, key := range keys {
			if bytes.Equal(key, written) {
				return true
			}
		}
		return false
	})
}

func awaitOnePhaseIn(start, end []byte) {
	awaitOnePhase(func(written []byte) bool {
		return bytes.Compare(written, start) >= 0 && !exceedEndKey(written, end)
	})
}
