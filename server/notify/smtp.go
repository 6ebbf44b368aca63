package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/smtp"
	"os"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// SMTP is a relay that takes mail. STARTTLS is used if the relay offers it; a
// certificate that does not verify is an error then.
type SMTP struct {
	Addr         string // host:port
	From         string // sender; empty: slurm@HOST of this machine
	User         string // for authentication; empty: none
	PasswordFile string // holds the password; read for every mail, so it can be changed
	CAFile       string // certificates to trust beside the system's, PEM; empty: none
}

func (s *SMTP) validate() error {
	if _, _, err := net.SplitHostPort(s.Addr); err != nil {
		return fault.New(fault.Invalid, "mail relay %q: %w", s.Addr, err).Advise("write host:port, such as mail.example.org:25")
	}
	if s.User != "" && s.PasswordFile == "" {
		return fault.New(fault.Invalid, "the mail relay's user %q has no password file", s.User).Advise("name a file that holds the password")
	}
	if s.From == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		s.From = "slurm@" + host
	}
	if !isPlainAddress(s.From) {
		return fault.New(fault.Invalid, "the sender %q is no plain address", s.From).Advise("write NAME@HOST")
	}
	return nil
}

// relay sends each mail over a connection of its own.
type relay struct{ SMTP }

func (r relay) send(ctx context.Context, m *message) error {
	host, _, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", r.Addr)
	if err != nil {
		return fmt.Errorf("relay %s: %w", r.Addr, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := r.sendMail(conn, host, m); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("relay %s: %w", r.Addr, err)
	}
	return nil
}

// sendMail says the mail to the relay.
func (r relay) sendMail(conn net.Conn, host string, m *message) error {
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	if name, err := os.Hostname(); err == nil && isPlainAddress("x@"+name) {
		if err := c.Hello(name); err != nil {
			return err
		}
	}
	if ok, _ := c.Extension("STARTTLS"); ok {
		config, err := r.tlsConfig(host)
		if err != nil {
			return err
		}
		if err := c.StartTLS(config); err != nil {
			return fmt.Errorf("STARTTLS: %w", err)
		}
	}
	if err := r.authenticateUser(c, host); err != nil {
		return err
	}
	if err := c.Mail(r.From); err != nil {
		return err
	}
	for _, to := range m.to {
		if err := c.Rcpt(to); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(r.mailText(m, time.Now())); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the mail is taken already
	return nil
}

func (r relay) tlsConfig(host string) (*tls.Config, error) {
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if r.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(r.CAFile)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: holds no certificate", r.CAFile)
	}
	config.RootCAs = pool
	return config, nil
}

// authenticateUser logs in where a user is configured. net/smtp refuses to send a
// password over a connection that is neither encrypted nor local.
func (r relay) authenticateUser(c *smtp.Client, host string) error {
	if r.User == "" {
		return nil
	}
	password, err := os.ReadFile(r.PasswordFile)
	if err != nil {
		return err
	}
	return c.Auth(smtp.PlainAuth("", r.User, strings.TrimRight(string(password), "\r\n"), host))
}

// mailText is the mail with its headers. Every value is an address that was checked or
// a line without control characters.
func (r relay) mailText(m *message, now time.Time) []byte {
	var b bytes.Buffer
	_, host, _ := strings.Cut(r.From, "@")
	for _, h := range [][2]string{
		{"From", r.From},
		{"To", strings.Join(m.to, ",\r\n ")},
		{"Subject", mime.QEncoding.Encode("utf-8", m.subject)},
		{"Date", now.Format(time.RFC1123Z)},
		{"Message-ID", fmt.Sprintf("<%s.%s.%d@%s>", m.job, strings.ToLower(string(m.event)), now.UnixNano(), host)},
		{"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(m.body)) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
