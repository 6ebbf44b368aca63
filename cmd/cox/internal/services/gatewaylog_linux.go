package services

import (
	"io"
	"log/slog"
	"time"

	"github.com/coxswain-sched/coxswain/server/serverlog"
)

// openGatewayLog appends to a log in bounded files.
func openGatewayLog(name string) (io.WriteCloser, error) { return serverlog.OpenFile(name) }

// newGatewayLogger writes to a log, each message a bounded number of times a minute.
func newGatewayLogger(out io.Writer) *slog.Logger {
	return slog.New(serverlog.NewBounded(slog.NewTextHandler(out, nil), time.Now))
}
