package holder

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/auth/peer"
	"github.com/coxswain-sched/coxswain/model/job"
)

// EndWord is the argument, followed by an exit status, by which a command beside a holder
// without a client ends the job in that way: the client is on another machine, and asks through
// the API.
const EndWord = "end"

// endName is the abstract socket at which the holder of an allocation listens.
func endName(allocFile string) string {
	sum := sha256.Sum256([]byte(allocFile))
	return "@cox-allocation-" + hex.EncodeToString(sum[:12])
}

// awaitEnd waits until a process of the same user says how the job ends.
func awaitEnd() (job.ExitCode, error) {
	l, err := net.Listen("unix", endName(os.Getenv(step.AllocVariable)))
	if err != nil {
		for { // somebody has the name: the server's cancel still ends the job
			time.Sleep(time.Hour)
		}
	}
	defer l.Close()
	for {
		c, err := l.Accept()
		if err != nil {
			return job.ExitCode{}, fmt.Errorf("wait for the end of the allocation: %w", err)
		}
		if end, err := readEnd(c); err == nil {
			return end, nil
		}
	}
}

// readEnd reads how the job ends from a process of the same user, or of root.
func readEnd(c net.Conn) (end job.ExitCode, err error) {
	defer c.Close()
	if err := checkPeer(c); err != nil {
		return end, err
	}
	_ = c.SetReadDeadline(time.Now().Add(greetingLimit))
	return end, json.NewDecoder(c).Decode(&end)
}

// checkPeer refuses a connection whose other end is neither this user's nor root's.
func checkPeer(c net.Conn) error {
	who, err := peer.Of(c)
	if err != nil {
		return fmt.Errorf("who holds the allocation: %w", err)
	}
	if who.UID != 0 && int(who.UID) != os.Geteuid() {
		return fmt.Errorf("user %d, and not this one, holds the allocation", who.UID)
	}
	return nil
}

// endMain is the command beside a holder: args is the exit status of the job.
func endMain(args []string) int {
	if err := sendEnd(args); err != nil {
		fmt.Fprintln(os.Stderr, "cox: end the allocation:", err)
		return 1
	}
	return 0
}

func sendEnd(args []string) error {
	if len(args) != 1 {
		return errors.New("an exit status is missing")
	}
	status, err := strconv.Atoi(args[0])
	if err != nil || status < 0 || status > 255 {
		return fmt.Errorf("%q is no exit status", args[0])
	}
	c, err := net.Dial("unix", endName(os.Getenv(step.AllocVariable)))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := checkPeer(c); err != nil {
		return err
	}
	return json.NewEncoder(c).Encode(job.ExitCode{Status: status})
}
