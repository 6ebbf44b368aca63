// Package fabric is one rank of the job by which cox verify --fabric tries the network between the
// nodes of a pool.
//
// The model. A rank listens on a port of its node and prints a line with its address and a token of
// its own. When all ranks have printed theirs, the caller hands each rank the lines of all. A rank
// then connects to the next one and accepts the one before: a ring over TCP. The ranks measure each
// connection alone, then run all-reduces of several sizes and check the sums. They print the results as
// lines again, which package verify of the commands reads.
//
// Sizes, rounds and the whole time have bounds. A rank answers only those that know its token. It
// needs no rights, and uses no device: it measures what programs get from the network over TCP, not
// RDMA.
package fabric

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Command is the hidden argument by which the binary is a rank; CheckWord after it only says that it
// could be one.
const (
	Command   = "fabric-rank"
	CheckWord = "check"
)

// Bounds of a rank.
const (
	ringTime  = 5 * time.Minute  // for all that it measures: half of the job's time
	dialTime  = 3 * time.Second  // to connect to one address of the next rank
	helloTime = 15 * time.Second // for the first words on a connection: the rank may be slow
	linkBytes = 16 << 20         // that each connection is measured with
	rounds    = 3                // of each size, after one that is not measured
	longest   = 20 * time.Second // a size that would take longer in all is left out
)

// stillTime is how long nothing may move between two ranks: a node under load takes its time.
var stillTime = time.Minute

// sizes of the all-reduces, in bytes.
var sizes = []int{1 << 20, 16 << 20, 64 << 20}

// Main is a rank, on standard input and output. The result is the exit code.
func Main(args []string) int {
	switch {
	case len(args) == 1 && args[0] == CheckWord:
		return 0
	case len(args) > 0:
		fmt.Fprintln(os.Stderr, "cox: "+Command+" is not for users: cox verify --fabric starts it")
		return 2
	}
	rank, err := strconv.Atoi(os.Getenv("SLURM_PROCID"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cox: "+Command+": SLURM_PROCID is not set: cox verify --fabric starts it by srun")
		return 2
	}
	if err := runRank(rank, os.Stdin, os.Stdout, factsOf(os.Getenv)); err != nil {
		fmt.Fprintf(os.Stdout, "cox-verify trouble rank=%d text=%s\n", rank, strconv.Quote(err.Error()))
	}
	return 0 // its words are the result
}

// peer is a rank as it presents itself.
type peer struct {
	rank  int
	at    []string // host:port
	token string
}

// String is the word for a peer: "1|10.0.0.1:4000+10.1.0.1:4000|5e…".
func (p *peer) String() string {
	return fmt.Sprintf("%d|%s|%s", p.rank, strings.Join(p.at, "+"), p.token)
}

// parsePeer reads such a word. A rank that can take no part has "-" for its addresses.
func parsePeer(word string) (peer, error) {
	parts := strings.Split(word, "|")
	if len(parts) != 3 {
		return peer{}, fmt.Errorf("%.70q is no rank", word)
	}
	rank, err := strconv.Atoi(parts[0])
	if err != nil || rank < 0 {
		return peer{}, fmt.Errorf("%.70q is no rank", word)
	}
	p := peer{rank: rank, token: parts[2]}
	if parts[1] != "-" {
		p.at = strings.Split(parts[1], "+")
	}
	return p, nil
}

// runRank presents the rank, waits for the others, and measures.
func runRank(rank int, in io.Reader, out io.Writer, facts string) error {
	start := time.Now()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.Close()
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // it never fails
	own := peer{rank: rank, at: ownAddresses(l.Addr().(*net.TCPAddr).Port), token: hex.EncodeToString(secret)}
	fmt.Fprintf(out, "cox-verify here %s\n", own.String())
	line, err := bufio.NewReaderSize(in, 1<<20).ReadString('\n')
	if err != nil {
		return fmt.Errorf("nobody said which the others are: %w", err)
	}
	all, err := readPeers(line)
	fmt.Fprintf(out, "cox-verify rank=%d %s start=%s end=%s seen=%d\n", rank, facts, unixText(start), unixText(time.Now()), len(all))
	if err != nil {
		return err
	}
	return measure(own, all, l, out)
}

// readPeers reads the line of all ranks: how many, and their words.
func readPeers(line string) ([]peer, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, fmt.Errorf("nobody said which the others are")
	}
	all := make([]peer, len(words)-1)
	for _, w := range words[1:] {
		p, err := parsePeer(w)
		if err != nil {
			return nil, err
		}
		if p.rank >= len(all) || all[p.rank].token != "" {
			return all, fmt.Errorf("%d ranks are there, and rank %d is not one of the first %d: another is missing", len(all), p.rank, len(all))
		}
		all[p.rank] = p
	}
	return all, nil
}

func unixText(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
