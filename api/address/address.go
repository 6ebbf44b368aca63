// Package address finds the server that commands talk to, and explains what to
// do where none answers.
//
// In this order: what the caller was told (--server), COX_SERVER, the current context of
// the user (Contexts), and the first of these sockets that exists: /run/coxswain/cox.sock (the machine's server),
// $XDG_RUNTIME_DIR/coxswain/cox.sock, ~/.local/state/coxswain/cox.sock (one's
// own). On a socket the kernel says who asks; everywhere else a token does, from
// COX_TOKEN or the file ~/.config/coxswain/token (before version 1.0: ~/.config/cox/token,
// which is read too). A word that is the name of a context stands for its server.
//
// The package opens no connection and imports no HTTP, so that commands which
// start thousands of times can use it.
package address

import (
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Address is where a server listens, and what to show it.
type Address struct {
	Socket string // path of a unix socket; empty: URL says where
	URL    string // "http://127.0.0.1:6820", no slash at the end; for a socket "http://cox"
	Token  string // empty on a socket
	SSH    string // "ssh://host": the server is reached by package tunnel; URL is "http://cox"
}

// String is the address as COX_SERVER takes it, without the token.
func (a Address) String() string {
	switch {
	case a.SSH != "":
		return a.SSH
	case a.Socket != "":
		return "unix://" + a.Socket
	}
	return a.URL
}

// Network is what net.Dial needs: "unix" and the path, or "tcp" and host:port.
func (a Address) Network() (network, addr string) {
	if a.Socket != "" {
		return "unix", a.Socket
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return "tcp", a.URL // Parse refused it before
	}
	if u.Port() != "" {
		return "tcp", u.Host
	}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
	}
	return "tcp", u.Host + ":" + port // an IPv6 address keeps its brackets in Host
}

// MachineSocket is the socket of the server that serves a whole machine.
const MachineSocket = "/run/coxswain/cox.sock"

// Env is what decides beside the arguments; the zero value is an empty
// environment.
type Env struct {
	Getenv func(string) string
	UID    int
	Exists func(socket string) bool // nil: asks the file system
}

// System is the environment of this process.
func System() Env { return Env{Getenv: os.Getenv, UID: os.Getuid()} }

// Find says where the server is. server and token come from options of the
// command line and may be empty.
func Find(server, token string) (Address, error) { return System().Find(server, token) }

// Find says where the server is, by the rules of the package comment.
func (e Env) Find(server, token string) (Address, error) {
	if server == "" {
		server = e.get("COX_SERVER")
	}
	c, err := e.findContext(server)
	switch {
	case err != nil:
		return Address{}, err
	case c != nil:
		server = c.Server
		if token == "" {
			token = c.Token
		}
	case server == "":
		return Address{Socket: e.firstSocket(), URL: "http://cox"}, nil
	}
	a, err := Parse(server)
	if err != nil || a.Socket != "" || a.SSH != "" {
		return a, err
	}
	a.Token, err = e.readToken(token)
	return a, err
}

// Parse reads unix:///path, /path, http://host:port, https://host, host:port or ssh://host.
func Parse(server string) (Address, error) {
	path, isSocket := strings.CutPrefix(server, "unix://")
	if isSocket || strings.HasPrefix(server, "/") {
		if !filepath.IsAbs(path) {
			return Address{}, unusableAddress(server, "the path of a socket begins with /")
		}
		return Address{Socket: path, URL: "http://cox"}, nil
	}
	if strings.HasPrefix(server, "ssh://") {
		return Address{SSH: server, URL: "http://cox"}, nil
	}
	full := server
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	switch {
	case err != nil:
		return Address{}, unusableAddress(server, "it is not an address")
	case u.Scheme != "http" && u.Scheme != "https":
		return Address{}, unusableAddress(server, u.Scheme+" is not spoken")
	case u.Hostname() == "":
		return Address{}, unusableAddress(server, "it names no host")
	case u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "":
		return Address{}, unusableAddress(server, "only scheme, host and port may stand in it")
	}
	return Address{URL: u.Scheme + "://" + u.Host}, nil
}

func unusableAddress(server, why string) error {
	return fault.New(fault.Invalid, "the server's address %q is not usable: %s", server, why).
		Advise("set COX_SERVER to unix:///path/of/cox.sock, http://host:port, ssh://host or the name of a context, or leave it out for the local server")
}

// firstSocket is the first that exists, or else the one where an own server would be.
func (e Env) firstSocket() string {
	exists := e.Exists
	if exists == nil {
		exists = func(name string) bool {
			_, err := os.Lstat(name)
			return err == nil || !errors.Is(err, fs.ErrNotExist)
		}
	}
	if exists(MachineSocket) {
		return MachineSocket
	}
	own := e.Listen()
	if dir := e.get("XDG_RUNTIME_DIR"); dir != "" && !exists(own) {
		if home := e.stateSocket(); exists(home) {
			return home
		}
	}
	return own
}

// Listen is the socket that a server of this user makes unless told otherwise.
func (e Env) Listen() string {
	switch dir := e.get("XDG_RUNTIME_DIR"); {
	case e.UID == 0:
		return MachineSocket
	case dir != "":
		return filepath.Join(dir, "coxswain", "cox.sock")
	}
	return e.stateSocket()
}

func (e Env) stateSocket() string {
	return filepath.Join(e.get("HOME"), ".local", "state", "coxswain", "cox.sock")
}

// TokenFile is where `cox token` keeps the token that commands use.
func (e Env) TokenFile() string {
	return filepath.Join(e.ConfigDir(), "token")
}

func (e Env) readToken(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if t := e.get("COX_TOKEN"); t != "" {
		return strings.TrimSpace(t), nil
	}
	b, err := os.ReadFile(e.TokenFile())
	if errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join(e.configHome(), "cox", "token")) // its place before version 1.0
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil // the server says what it wants
	case err != nil:
		return "", fault.New(fault.Permission, "read the access token: %w", err).
			Advise("make %s readable for you alone, or set COX_TOKEN", e.TokenFile())
	}
	return strings.TrimSpace(string(b)), nil
}

func (e Env) get(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}

// startRemedy says what to do where no server answers: one on another machine cannot be started from here.
func (a Address) startRemedy() string {
	const other = "set COX_SERVER to unix:///path or http://host:port for another server"
	if a.Socket == "" {
		return "start the server there, or forward the port by SSH; " + other
	}
	return "start one: cox up -d; " + other
}

// Explain makes of the error of a connection that could not be had one that says
// what to do. Other errors stay fault.Unavailable with their text.
func (a Address) Explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fault.New(fault.Unavailable, "no server answers at %s", a).
			Advise("%s", a.startRemedy())
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Permission, "you may not connect to %s", a).
			Advise("it belongs to somebody else: start your own server with cox up, and set COX_SERVER to it")
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return fault.New(fault.Unavailable, "there is no machine %s, so no server at %s", unknown.Name, a).
			Advise("correct the address: http://host:port or unix:///path/of/cox.sock")
	}
	return fault.New(fault.Unavailable, "no answer from the server at %s: %w", a, err).
		Advise("ask again; if it stays so, see whether it runs: cox info, systemctl status coxswain")
}
