package node

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// killSessions sends SIGKILL to every process whose session leader was one of the
// given processes, which have ended, until none is left to be seen. A process that
// made a session of its own is not found: only a cgroup finds that.
func killSessions(leaders map[int]bool) {
	for leader := range leaders {
		if syscall.Kill(leader, 0) == nil {
			delete(leaders, leader) // the number is in use again: not our session
		}
	}
	for range 10 { // a process that forks while we look is met in the next round
		found := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			if state, session := procSession(pid); leaders[session] && state != 'Z' {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

// procSession reads a process's state and session from /proc; 0 if it is gone.
func procSession(pid int) (state byte, session int) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// The name in parentheses may hold anything; what follows the last one is
	// state, parent, process group, session.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 4 {
		return 0, 0
	}
	session, _ = strconv.Atoi(string(fields[3]))
	return fields[0][0], session
}
