//go:build !linux

package services

import (
	"io"
	"log/slog"
	"os"
)

// openGatewayLog appends to a log.
func openGatewayLog(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

func newGatewayLogger(out io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(out, nil)) }
