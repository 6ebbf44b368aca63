package sshserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/gliderlabs/ssh"
	"github.com/pkg/sftp"
	gossh "golang.org/x/crypto/ssh"
)

// Name is that of the program that is the server: the binary has a link of this name.
const Name = "cox-ssh"

// Main serves the connection on standard input and output, to its end. The result is the exit code.
func Main() int {
	if err := serve(&stdioConn{in: os.Stdin, out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, Name+":", err)
		return 1
	}
	return 0
}

// serve serves one connection.
func serve(c net.Conn) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	signer, err := gossh.NewSignerFromKey(key)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	reverse := &ssh.ForwardedTCPHandler{}
	anyPort := func(ssh.Context, string, uint32) bool { return true }
	s := &ssh.Server{
		Version: "coxswain", Handler: serveSession, HostSigners: []ssh.Signer{signer},
		LocalPortForwardingCallback: anyPort, ReversePortForwardingCallback: anyPort,
		ChannelHandlers:   map[string]ssh.ChannelHandler{"session": ssh.DefaultSessionHandler, "direct-tcpip": ssh.DirectTCPIPHandler},
		RequestHandlers:   map[string]ssh.RequestHandler{"tcpip-forward": reverse.HandleSSHRequest, "cancel-tcpip-forward": reverse.HandleSSHRequest},
		SubsystemHandlers: map[string]ssh.SubsystemHandler{"sftp": serveFiles},
	}
	s.HandleConn(c)
	return nil
}

// serveFiles serves files as the job's user, relative to the directory of the job.
func serveFiles(s ssh.Session) {
	server, err := sftp.NewServer(s)
	if err != nil {
		_ = s.Exit(1)
		return
	}
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(s.Stderr(), Name+":", err)
		_ = s.Exit(1)
		return
	}
	_ = s.Exit(0)
}

// stdioConn is a connection over two files. Deadlines have no effect.
type stdioConn struct{ in, out *os.File }

func (c *stdioConn) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *stdioConn) Write(b []byte) (int, error) { return c.out.Write(b) }

// Close ends both directions.
func (c *stdioConn) Close() error { return errors.Join(c.in.Close(), c.out.Close()) }

func (c *stdioConn) LocalAddr() net.Addr              { return stdioAddr{} }
func (c *stdioConn) RemoteAddr() net.Addr             { return stdioAddr{} }
func (c *stdioConn) SetDeadline(time.Time) error      { return nil }
func (c *stdioConn) SetReadDeadline(time.Time) error  { return nil }
func (c *stdioConn) SetWriteDeadline(time.Time) error { return nil }

type stdioAddr struct{}

func (stdioAddr) Network() string { return "stdio" }
func (stdioAddr) String() string  { return "127.0.0.1:0" }
