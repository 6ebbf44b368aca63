package notify

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
)

// letter is what the relay of a test took.
type letter struct {
	from, user string
	to         []string
	data       string
	encrypted  bool
}

// mailbox is a small SMTP server: one mail a connection, STARTTLS and PLAIN where
// they are wanted.
type mailbox struct {
	addr string
	got  chan letter
	tls  *tls.Config // nil: not offered
	deny string      // a recipient that it does not take
}

// listen starts the server and returns the file of its certificate.
func listen(t *testing.T, m *mailbox, encrypted bool) (certificate string) {
	t.Helper()
	if encrypted {
		certificate = filepath.Join(t.TempDir(), "ca.pem")
		m.tls = selfSigned(t, certificate)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr, m.got = l.Addr().String(), make(chan letter, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			m.serve(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return certificate
}

func selfSigned(t *testing.T, file string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func (m *mailbox) serve(conn net.Conn) {
	defer func() { conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	c := textproto.NewConn(conn)
	say := func(s string) { _ = c.PrintfLine("%s", s) }
	say("220 mailbox")
	var l letter
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			if m.tls != nil && !l.encrypted {
				say("250-mailbox")
				say("250 STARTTLS")
			} else {
				say("250-mailbox")
				say("250 AUTH PLAIN")
			}
		case "STARTTLS":
			say("220 go on")
			conn = tls.Server(conn, m.tls)
			c, l.encrypted = textproto.NewConn(conn), true
		case "AUTH":
			user, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
			l.user = strings.ReplaceAll(string(user), "\x00", "/")
			say("235 yes")
		case "MAIL":
			l.from = rest
			say("250 yes")
		case "RCPT":
			if m.deny != "" && strings.Contains(rest, m.deny) {
				say("550 no such user")
				continue
			}
			l.to = append(l.to, rest)
			say("250 yes")
		case "DATA":
			say("354 go on")
			data, err := io.ReadAll(c.DotReader())
			if err != nil {
				return
			}
			l.data = string(data)
			say("250 taken")
			m.got <- l
		case "QUIT":
			say("221 bye")
			return
		default:
			say("500 what?")
		}
	}
}

func finished(mailUser string) Change {
	j := view(job.Completed, 1, true)
	j.Spec.Mail.To = mailUser
	return Change{Before: view(job.Running, 1, true), After: j}
}

// A relay gets the mail encrypted and with a password where it offers that, and a
// mail that every program can read.
func TestRelay(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, encrypted := range []bool{false, true} {
		m := &mailbox{}
		ca := listen(t, m, encrypted)
		n, log := start(t, Config{SMTP: SMTP{Addr: m.addr, From: "cox@cluster", User: "relay", PasswordFile: password, CAFile: ca}, Domain: "example.org"})
		change := finished("anna,ben@example.com")
		change.After.Spec.Name = "größe " + strings.Repeat("x", 200)
		n.Job(change)
		closeNow(t, n)
		if n.Stats() != (Stats{Sent: 1}) {
			t.Fatalf("%+v\n%s", n.Stats(), log)
		}
		l := <-m.got
		if l.encrypted != encrypted || l.user != "/relay/secret" || !strings.HasPrefix(l.from, "FROM:<cox@cluster>") || strings.Join(l.to, " ") != "TO:<anna@example.org> TO:<ben@example.com>" {
			t.Errorf("%+v", l)
		}
		checkMail(t, l.data, change.After.Spec.Name[:40])
	}
}

func checkMail(t *testing.T, data, name string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || !strings.HasPrefix(subject, "Slurm Job_id=7 Name="+name) || !strings.HasSuffix(subject, "COMPLETED, ExitCode 0") {
		t.Errorf("subject %q, %v", subject, err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil || !bytes.Contains(body, []byte("größe")) {
		t.Errorf("text %q, %v", body, err)
	}
	if to, err := m.Header.AddressList("To"); err != nil || len(to) != 2 {
		t.Errorf("to %v, %v", to, err)
	}
	if _, err := m.Header.Date(); err != nil || m.Header.Get("Auto-Submitted") != "auto-generated" {
		t.Errorf("%v, %v", m.Header, err)
	}
}

// A relay that does not answer, refuses, or is not who it should be costs one line.
func TestRelayFails(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	refusing, untrusted := &mailbox{deny: "anna"}, &mailbox{}
	listen(t, refusing, false)
	listen(t, untrusted, true)
	for name, c := range map[string]struct{ addr, want string }{
		"silent":    {silent.Addr().String(), "deadline exceeded"},
		"refusing":  {refusing.addr, "no such user"},
		"untrusted": {untrusted.addr, "STARTTLS"},
	} {
		timeout := 2 * time.Minute
		if name == "silent" {
			timeout = 300 * time.Millisecond
		}
		n, log := start(t, Config{SMTP: SMTP{Addr: c.addr, From: "cox@cluster"}, Timeout: timeout})
		n.Job(finished("anna"))
		closeNow(t, n)
		if s := n.Stats(); s != (Stats{Failed: 1}) || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: %+v\n%s", name, s, log)
		}
	}
}

// hostile draws text with everything that ends a line or a header.
func hostile(t *rapid.T, label string) string {
	pieces := []string{"\r\n", "\n", "\r", "Bcc: x@y", "\r\n\r\n", "a", "é", "\x00", "\u2028", "\u0085", "\xff", ",", "=?utf-8?q?=0ABcc?=", " ", "<b@c>", "@", ".\r\n", "-"}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 30).Draw(t, label), "")
}

// Whatever a job says, a mail has the headers that it always has, one subject line,
// and recipients that are plain addresses.
func TestNoInjection(t *testing.T) {
	r := relay{SMTP{From: "cox@cluster"}}
	rapid.Check(t, func(t *rapid.T) {
		j := view(job.Completed, 1, true)
		j.Spec.Name, j.Spec.Mail.To, j.Spec.Account, j.Spec.WorkDir = hostile(t, "name"), hostile(t, "to"), hostile(t, "account"), hostile(t, "folder")
		j.Spec.Owner.User = "anna"
		m := composeMail(j, End, nil, "example.org")
		if strings.ContainsFunc(m.subject, func(r rune) bool { return r < ' ' || r == 0x85 || r == 0x2028 }) {
			t.Fatalf("subject %q", m.subject)
		}
		for _, to := range m.to {
			if !isPlainAddress(to) {
				t.Fatalf("recipient %q", to)
			}
		}
		for _, e := range m.environ {
			if strings.ContainsAny(e, "\x00\n") {
				t.Fatalf("variable %q", e)
			}
		}
		h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(r.mailText(m, epoch)))).ReadMIMEHeader()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}
		if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, want) {
			t.Fatalf("headers %q", got)
		}
	})
}

// Names without a host get the site's, and nothing but plain addresses passes.
func TestRecipients(t *testing.T) {
	for text, want := range map[string]string{
		"":              "anna@example.org | ",
		" , ":           "",
		"ben":           "ben@example.org | ",
		"a.b+c@x-y.org": "a.b+c@x-y.org | ",
		"a,-b,c":        "a@example.org c@example.org | -b",
		"<a@b>":         " | <a@b>",
		"a b":           " | a b",
	} {
		j := view(job.Completed, 1, true)
		j.Spec.Mail.To = text
		to, bad := mailRecipients(j.Spec, "example.org")
		if got := strings.Join(to, " ") + " | " + strings.Join(bad, " "); got != want && (want != "" || len(to)+len(bad) > 0) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	many := view(job.Completed, 1, true)
	many.Spec.Mail.To = strings.Repeat("a@b,", 40)
	if to, _ := mailRecipients(many.Spec, ""); len(to) != maxRecipients {
		t.Errorf("%d recipients", len(to))
	}
}

// What a change costs the loop that reports it, for a job without mail and with it.
func BenchmarkJob(b *testing.B) {
	n, err := newNotifier(Config{Command: []string{"x"}, Queue: 1}, collect{make(chan *message)}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	without := finished("a@b")
	without.After.Spec.Mail = nil
	for name, c := range map[string]Change{"without mail": without, "with mail": finished("a@b")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n.Job(c)
			}
		})
	}
}
