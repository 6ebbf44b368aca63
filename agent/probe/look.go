package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostHeader bounds what is read of an answer, in bytes.
const mostHeader = 64 << 10

// lookHTTP sends GET path on a connection. Any status from 200 to 399 passes. Redirects are not followed.
func lookHTTP(ctx context.Context, c net.Conn, host, path string) error {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	request := "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: cox-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err := c.Write([]byte(request)); err != nil {
		return bareError(ctx, err)
	}
	head := &io.LimitedReader{R: c, N: mostHeader}
	status, err := readStatus(bufio.NewReaderSize(head, 4096))
	switch {
	case errors.Is(err, io.EOF) && head.N == 0:
		return fmt.Errorf("GET %s: the answer does not end within %d KiB", path, mostHeader>>10)
	case err != nil:
		return fmt.Errorf("GET %s: %w", path, bareError(ctx, err))
	case status < 200 || status > 399:
		return fmt.Errorf("GET %s was answered with status %d", path, status)
	}
	return nil
}

// readStatus reads the status of an answer, after those that are provisional.
func readStatus(r *bufio.Reader) (int, error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasPrefix(words[0], "HTTP/1.") {
			return 0, errors.New("the answer is not HTTP/1.1")
		}
		status, err := strconv.Atoi(words[1])
		if err != nil || status < 100 || status > 999 {
			return 0, fmt.Errorf("the answer has no status: %.60q", line)
		}
		if status >= 200 || status == 101 {
			return status, nil
		}
		for strings.TrimSpace(line) != "" { // the header of a provisional answer
			if line, err = r.ReadString('\n'); err != nil {
				return 0, err
			}
		}
	}
}

// dialAddress connects.
func dialAddress(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, bareError(ctx, err)
	}
	if end, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(end)
	}
	return c, nil
}

// bareError is why something failed, without the addresses that the caller knows.
func bareError(ctx context.Context, err error) error {
	var op *net.OpError
	switch {
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errLate
	case errors.Is(err, unix.ECONNREFUSED):
		return errors.New("nothing listens there")
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

var errLate = errors.New("no answer in time")
