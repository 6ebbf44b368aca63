package fastclient

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// dialServer connects to a server.
func dialServer(a address.Address) (io.ReadWriteCloser, error) {
	if strings.HasPrefix(a.URL, "https:") {
		return nil, fault.New(fault.Unsupported, "Slurm's command names do not speak TLS, and the server's address is %s", a).
			Advise("ask through cox itself, which does: cox queue, cox submit; or use the server's socket")
	}
	if a.SSH != "" {
		return nil, fault.New(fault.Unsupported, "Slurm's command names do not tunnel by SSH, and the server's address is %s", a).
			Advise("ask through cox itself, which does: cox queue, cox submit")
	}
	network, to := a.Network()
	if network == "unix" {
		c, err := dialUnix(to)
		if err != nil {
			return nil, a.Explain(err)
		}
		return c, nil
	}
	c, err := net.Dial(network, to)
	if err != nil {
		return nil, a.Explain(err)
	}
	return c, nil
}

// socket is a connected unix socket in blocking mode: no poller, no goroutine.
type socket int

func dialUnix(path string) (socket, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		syscall.Close(fd)
		return -1, &os.PathError{Op: "connect", Path: path, Err: err}
	}
	return socket(fd), nil
}

func (s socket) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(s), p)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (s socket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		// MSG_NOSIGNAL: a server that went away is an error, not the end of us.
		n, err := syscall.SendmsgN(int(s), p[done:], nil, nil, syscall.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return done, os.NewSyscallError("write", err)
		default:
			done += n
		}
	}
	return done, nil
}

func (s socket) Close() error { return syscall.Close(int(s)) }

// stopWriting makes a Write that waits return.
func (s socket) stopWriting() { _ = syscall.Shutdown(int(s), syscall.SHUT_RDWR) }

// writerConn is a socket to which other goroutines may still write when it is closed. These writes
// fail. Without it they would go to whatever has got the descriptor's number since.
type writerConn struct {
	socket
	mu     sync.Mutex // held while a Write or the Close runs
	closed bool
}

// Write fails with net.ErrClosed after Close.
func (c *writerConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	return c.socket.Write(p)
}

// Close ends a Write that waits, too.
func (c *writerConn) Close() error {
	c.stopWriting()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.socket.Close()
}
