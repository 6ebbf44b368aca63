// Package tunnel reaches the server of another machine by SSH: ssh://[USER@]HOST[:PORT] is the
// server of that machine, ssh://HOST/run/x.sock the one behind that socket. The ssh program of
// this machine does it, with its configuration, keys and agent. There, the kernel says who
// asks: it is the user who logged in.
//
// The first command makes a connection that stays for ten idle minutes (ControlPersist); it and
// the local end of the tunnel are in /tmp/cox-ssh-UID, a folder of the user alone. Later
// commands use it. Commands that begin at the same time may each make one; the last one stays.
//
// The package does not ask the server, and it keeps no process of its own.
package tunnel

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Target is a server behind SSH.
type Target struct {
	Login  string // HOST or USER@HOST
	Port   string // empty: as ssh is configured
	Socket string // path of the server's socket there; empty: the first that exists
}

// Parse reads ssh://[USER@]HOST[:PORT][/PATH]. The error is fault.Invalid.
func Parse(server string) (Target, error) {
	u, err := url.Parse(server)
	bad := func(why string) (Target, error) {
		return Target{}, fault.New(fault.Invalid, "the server's address %q is not usable: %s", server, why).
			Advise("write ssh://HOST, ssh://USER@HOST:PORT, or ssh://HOST/path/of/cox.sock")
	}
	switch {
	case err != nil || u.Scheme != "ssh":
		return bad("it is no address of SSH")
	case u.Hostname() == "" || strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.User.String(), "-"):
		return bad("it names no host")
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil && strings.Contains(u.User.String(), ":"):
		return bad("only user, host, port and the path of a socket may stand in it")
	}
	t := Target{Login: u.Hostname(), Port: u.Port()}
	if u.User != nil {
		t.Login = u.User.Username() + "@" + t.Login
	}
	if p := path.Clean(u.Path); u.Path != "" && p != "/" {
		t.Socket = p
	}
	return t, nil
}

// findSocket prints the path of the first socket of a server there is, as package address finds it.
const findSocket = `for s in /run/coxswain/cox.sock "${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/coxswain/cox.sock" "$HOME/.local/state/coxswain/cox.sock"; do test -S "$s" && echo "$s" && exit 0; done; exit 3`

// noSocket is the exit code of findSocket where there is none.
const noSocket = 3

// Open makes the tunnel, or finds the one that is there, and returns the path of its local socket.
// SSH may ask on the terminal for what it needs. Where the machine cannot be reached, or no server is
// there, the error is fault.Unavailable.
func Open(ctx context.Context, t Target) (socket string, err error) {
	dir, err := socketFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(t.Login + " " + t.Port + " " + t.Socket))
	name := filepath.Join(dir, hex.EncodeToString(sum[:6]))
	socket, control := name+".sock", name+".ctl"
	if isAnswering(socket) {
		return socket, nil
	}
	remote := t.Socket
	if remote == "" {
		out, err := t.runLine(ctx, control, "sh -c '"+strings.ReplaceAll(findSocket, "'", `'\''`)+"'")
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.ExitCode() == noSocket:
			return "", fault.New(fault.Unavailable, "no server is on %s", t.Login).Advise("start one there: cox up; or name its socket: ssh://%s/path/of/cox.sock", t.Login)
		case err != nil:
			return "", fault.New(fault.Unavailable, "%s is not reached by SSH: %w", t.Login, err).Advise("try it by itself: ssh %s", t.Login)
		}
		remote = strings.TrimSpace(string(out))
	} else if _, err := t.runLine(ctx, control, "true"); err != nil {
		return "", fault.New(fault.Unavailable, "%s is not reached by SSH: %w", t.Login, err).Advise("try it by itself: ssh %s", t.Login)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Permission, "the tunnel: %w", err).Advise("remove %s", dir)
	}
	cmd := exec.CommandContext(ctx, sshProgram(), append(t.sshOptions(control), "-O", "forward", "-L", socket+":"+remote, "--", t.Login)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fault.New(fault.Unavailable, "ssh %s does not make the tunnel: %s", t.Login, bytes.TrimSpace(out)).
			Advise("its sshd may forbid it: AllowStreamLocalForwarding yes in sshd_config")
	}
	return socket, nil
}

// sshProgram is the ssh of this machine; COX_SSH names another.
func sshProgram() string { return cmp.Or(os.Getenv("COX_SSH"), "ssh") }

func (t Target) sshOptions(control string) []string {
	out := []string{"-o", "ControlPath=" + control}
	if t.Port != "" {
		out = append(out, "-p", t.Port)
	}
	return out
}

// runLine runs a line in the machine's shell over the connection that stays.
func (t Target) runLine(ctx context.Context, control, line string) ([]byte, error) {
	args := append(t.sshOptions(control), "-o", "ControlMaster=auto", "-o", "ControlPersist=600", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3", "-T", "--", t.Login, line)
	cmd := exec.CommandContext(ctx, sshProgram(), args...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr // it asks on the terminal, and says there what is wrong
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second // the connection that stays holds the pipe for a moment
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return out.Bytes(), err
}

// isAnswering reports whether somebody accepts connections on a socket.
func isAnswering(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// socketFolder is the user's own folder for sockets; their paths must be short.
func socketFolder() (string, error) {
	dir := "/tmp/cox-ssh-" + strconv.Itoa(os.Getuid())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fault.New(fault.Exhausted, "a folder for tunnels: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("a folder for tunnels: %w", err)
	}
	own, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || !ok || int(own.Uid) != os.Getuid() {
		return "", fault.New(fault.Permission, "%s is not a folder of yours alone", dir).Advise("remove it, or have its owner do so")
	}
	return dir, nil
}
