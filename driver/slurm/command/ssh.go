package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// SSH runs commands on a login node, by the system's ssh: its configuration, keys and
// agents count. All commands of a user share one connection, which ssh opens with the first,
// and again after it broke. The host's key has to be known: nothing is trusted at first
// sight, and nothing asks for a password.
//
// Another user's command (Call.User) goes through a login of that user's where Login has %u
// in it, else through Login and the words of Become; where there are none it is refused.
type SSH struct {
	Login   string   // [user@]host, or a name in ssh's configuration; %u in it is the user
	Own     string   // that user, for commands that are nobody's
	Become  []string // as Here.Become, there: "sudo", "-n", "-u", "%u", "--"
	Dir     string   // where the connections' sockets are; its name must be short
	Env     []string // as Here.Env
	Options []string // more of ssh's: "-p", "2222"; %u is the user: "-i", "/etc/cox/keys/%u"
	Program string   // empty: ssh
	// Commands is a folder there in which commands are looked for first; empty: in PATH alone.
	Commands string

	mu   sync.Mutex
	used map[string]bool // users with a connection
}

// sshFailed is ssh's exit code for what went wrong with the connection.
const sshFailed = 255

// Run is Runner's.
func (s *SSH) Run(ctx context.Context, c Call) (Result, error) {
	line, stdin := remoteCommand(s.Commands, s.Env, &c)
	login, args, err := s.sshWords(&c, line, false)
	if err != nil {
		return Result{}, err
	}
	cmd := exec.CommandContext(ctx, cmp.Or(s.Program, "ssh"), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterKill
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the shared connection, begun by this one, has its standard error
		err = nil
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("%s on %s did not answer: %w", c.Name, login, context.Cause(ctx))
	case errors.As(err, &exit) && exit.ExitCode() == sshFailed:
		return Result{}, fmt.Errorf("ssh %s: %s", login, oneLine(said.String()))
	case errors.As(err, &exit) && exit.Exited():
		return Result{out.Bytes(), said.Bytes(), exit.ExitCode()}, nil
	case err != nil:
		return Result{}, err
	}
	return Result{out.Bytes(), said.Bytes(), 0}, nil
}

// sshWords are ssh's arguments for a command, and the login that it goes through.
func (s *SSH) sshWords(c *Call, line string, terminal bool) (login string, args []string, err error) {
	user, words := cmp.Or(c.User, s.Own), []string{"exec"}
	switch {
	case s.hasOwnLogins() && user == "":
		return "", nil, fault.New(fault.Invalid, "ssh %s: as whom the cluster is looked at is not said", s.Login)
	case s.hasOwnLogins():
	case c.User != "" && len(s.Become) == 0:
		return "", nil, fault.New(fault.Unsupported, "over SSH, commands run as %s and nobody else", s.Login)
	case c.User != "":
		for _, w := range substituteUser(s.Become, user) {
			words = append(words, shellQuote(w))
		}
	}
	words = append(words, "sh", "-c", shellQuote(line))
	if login = s.loginFor(user); strings.HasPrefix(login, "-") {
		return "", nil, fault.New(fault.Invalid, "%q is no login", login)
	}
	args = append(s.connectionOptions(), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ClearAllForwardings=yes")
	if terminal { // without a word of its end
		args = append(args, "-o", "LogLevel=ERROR", "-tt")
	} else {
		args = append(args, "-T")
	}
	return login, append(append(args, s.optionsFor(user)...), "--", login, strings.Join(words, " ")), nil
}

// connectionOptions are the options of the one connection.
func (s *SSH) connectionOptions() []string {
	return []string{"-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath=" + filepath.Join(s.Dir, "%C"), "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"}
}

// hasOwnLogins reports whether every user has a login of his own.
func (s *SSH) hasOwnLogins() bool {
	return strings.Contains(strings.ReplaceAll(s.Login, "%%", ""), "%u")
}

// loginFor is a user's, and noted so that its connection can be closed.
func (s *SSH) loginFor(user string) string {
	if !s.hasOwnLogins() {
		return s.Login
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used = map[string]bool{}
	}
	s.used[user] = true
	return substituteUser([]string{s.Login}, user)[0]
}

// optionsFor are ssh's for a user.
func (s *SSH) optionsFor(user string) []string {
	if !s.hasOwnLogins() {
		return s.Options
	}
	return substituteUser(s.Options, user)
}

// shellQuote makes one word of a text.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Close ends the shared connections.
func (s *SSH) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if found, _ := os.ReadDir(s.Dir); len(found) == 0 {
		return nil
	}
	s.mu.Lock()
	users := slices.Sorted(maps.Keys(s.used))
	s.mu.Unlock()
	if !s.hasOwnLogins() {
		users = []string{""}
	}
	for _, u := range users {
		args := append(append(s.connectionOptions(), s.optionsFor(u)...), "-O", "exit", "--", s.loginFor(u))
		_ = exec.CommandContext(ctx, cmp.Or(s.Program, "ssh"), args...).Run() // it may have ended
	}
	return nil
}
