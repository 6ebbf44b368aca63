// Package portdial is a connection to a port of the node that it runs on, over standard input and
// output. cox forward starts one inside the job for each connection, beside the tasks: so it is in
// the network of the job, as the job's user, on every engine.
package portdial

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Command is the hidden argument by which the binary is such a connection; the port follows, and
// CheckWord where the port is only to be looked at.
const Command = "dial-port"

// CheckWord has the port looked at: a connection is made and closed.
const CheckWord = "check"

// ExitRefused is the exit code where nothing listens at the port.
const ExitRefused = 3

// dialTime bounds one attempt at an address.
const dialTime = 5 * time.Second

// Main connects to the port that args name. The result is the exit code.
func Main(args []string) int {
	check := len(args) == 2 && args[1] == CheckWord
	if len(args) != 1 && !check {
		fmt.Fprintln(os.Stderr, "cox: "+Command+" is not for users: cox forward starts it")
		return 2
	}
	c, err := dialNode(args[0])
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		fmt.Fprintf(os.Stderr, "nothing listens on port %s\n", args[0])
		return ExitRefused
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	if !check {
		carry(c)
	}
	return 0
}

// dialNode connects to a port of this node: programs listen on every address, on the loopback, or on
// the address of their node alone, where nodes share a machine.
func dialNode(port string) (*net.TCPConn, error) {
	hosts := []string{"127.0.0.1", "::1"}
	for _, name := range []string{"SLURMD_NODENAME", "HOSTNAME"} {
		if host := os.Getenv(name); host != "" && !strings.Contains(strings.Join(hosts, " "), host) {
			hosts = append(hosts, host)
		}
	}
	var first error
	for _, host := range hosts {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), dialTime)
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// carry copies both directions. The end of one is passed on, and the other goes on to its own.
func carry(c *net.TCPConn) {
	go func() { // ends with the input, or with the process
		_, _ = io.Copy(c, os.Stdin)
		_ = c.CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, c)
}
