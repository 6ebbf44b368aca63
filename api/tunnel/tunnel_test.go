package tunnel

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestParse(t *testing.T) {
	for server, want := range map[string]Target{
		"ssh://login1":                         {Login: "login1"},
		"ssh://anna@login1:2222":               {Login: "anna@login1", Port: "2222"},
		"ssh://login1/":                        {Login: "login1"},
		"ssh://anna@login1/srv/cox//cox.sock":  {Login: "anna@login1", Socket: "/srv/cox/cox.sock"},
		"ssh://10.0.0.1:22/run/x/../cox1.sock": {Login: "10.0.0.1", Port: "22", Socket: "/run/cox1.sock"},
	} {
		if got, err := Parse(server); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", server, got, err, want)
		}
	}
	for _, server := range []string{"ssh://", "http://x", "ssh://-oProxyCommand=x", "ssh://-l@x", "ssh://x?y=z", "ssh://u:password@x", "ssh:///run/x"} {
		if got, err := Parse(server); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %+v, %v", server, got, err)
		}
	}
}

// startSSHD starts an sshd of this user's own on a free port, and has COX_SSH lead to a client that
// knows it. It skips the test where there is none.
func startSSHD(t *testing.T, dir string) (login, port string) {
	t.Helper()
	const daemon = "/usr/sbin/sshd"
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(daemon); err != nil {
		t.Skip("no sshd is on this machine")
	}
	for _, key := range []string{"host", "me"} {
		if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("conf", fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/me.pub\nStrictModes no\nPidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM no\n", port, dir, dir), 0o600)
	write("client", fmt.Sprintf("Host *\n  IdentityFile %s/me\n  IdentitiesOnly yes\n  BatchMode yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile %s/known\n  LogLevel ERROR\n", dir, dir), 0o600)
	write("ssh", "#!/bin/sh\nexec ssh -F "+dir+"/client \"$@\"\n", 0o700)
	t.Setenv("COX_SSH", filepath.Join(dir, "ssh"))
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd wants it
			t.Fatal(err)
		}
	}
	cmd := exec.Command(daemon, "-D", "-e", "-f", filepath.Join(dir, "conf"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
			return me.Username + "@127.0.0.1", port
		}
		if time.Now().After(deadline) {
			t.Fatalf("sshd does not listen: %v", err)
		}
	}
}

// TestTunnel: a server behind a real sshd is reached, again over the connection that is there, and
// what is wrong is said: no server, no such machine.
func TestTunnel(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "coxt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	login, port := startSSHD(t, dir)
	socket := filepath.Join(dir, "server.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "well") })}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	target := Target{Login: login, Port: port, Socket: socket}
	var local [2]string
	for i := range local {
		if local[i], err = Open(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			control := strings.TrimSuffix(local[0], ".sock") + ".ctl"
			t.Cleanup(func() {
				_ = exec.Command(os.Getenv("COX_SSH"), append(target.sshOptions(control), "-O", "exit", "--", login)...).Run()
				os.Remove(local[0])
			})
		}
		c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", local[i])
		}, DisableKeepAlives: true}}
		resp, err := c.Get("http://cox/")
		if err != nil {
			t.Fatal(err)
		}
		var b [16]byte
		n, _ := resp.Body.Read(b[:])
		resp.Body.Close()
		if string(b[:n]) != "well" {
			t.Errorf("the server answers %q", b[:n])
		}
	}
	if local[0] != local[1] {
		t.Errorf("a second tunnel was made: %q", local)
	}
	if _, err := Open(t.Context(), Target{Login: "nobody@127.0.0.1", Port: "1"}); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "is not reached by SSH") {
		t.Errorf("no such machine: %v", err)
	}
}
