package gateway

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// lookEvery is the least time between two looks whether the files of a certificate have changed.
const lookEvery = time.Second

// certificate is a certificate in two files, which are read again when they have changed.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	times  [2]time.Time // of the files when they were read last
	looked time.Time
}

// openCertificate reads a certificate; without files there is none.
func openCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, fault.New(fault.Invalid, "a certificate has two files, and one is missing").Advise("give --tls-cert and --tls-key")
	}
	c := &certificate{cert: cert, key: key, log: log}
	c.times = c.fileTimes()
	loaded, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the certificate %s with the key %s cannot be used: %w", cert, key, err).Advise("give a certificate and its key as PEM files that the gateway may read")
	}
	c.loaded = &loaded
	return c, nil
}

// fileTimes are the times of both files; zero for one that is not there.
func (c *certificate) fileTimes() (t [2]time.Time) {
	for i, name := range []string{c.cert, c.key} {
		if info, err := os.Stat(name); err == nil {
			t[i] = info.ModTime()
		}
	}
	return t
}

// current is the certificate for a new connection (tls.Config.GetCertificate). If the new files cannot
// be used the old certificate goes on.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if times := c.fileTimes(); times != c.times {
			loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
			if err != nil {
				c.log.Warn("the new certificate cannot be used; the old one goes on", "file", c.cert, "err", err)
			} else {
				c.loaded, c.times = &loaded, times
				c.log.Info("the certificate was read again", "file", c.cert)
			}
		}
	}
	return c.loaded, nil
}
