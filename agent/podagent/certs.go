package podagent

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// validBefore and validFor bound the certificates of an attempt. They are as good as the
// attempt's Secret is secret, and are no more when that is deleted; the bounds only allow
// for clocks that differ and for jobs that run long.
const (
	validBefore = 24 * time.Hour
	validFor    = 10 * 365 * 24 * time.Hour
)

// maxSecret is how much an API server takes in a Secret, in bytes.
const maxSecret = 1 << 20

// Files are the contents of the attempt's Secret by their names: the plan, and
// certificates made for this attempt alone, whose issuing key is kept by nobody.
func Files(p *Plan, now time.Time) (map[string][]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{PlanFile: text}
	if len(p.Members) == 1 {
		return checkSecretSize(files) // it talks to nobody
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "attempt " + p.Ref.String()},
		NotBefore: now.Add(-validBefore), NotAfter: now.Add(validFor),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return nil, err
	}
	files[CAFile] = pemBlock("CERTIFICATE", der)
	for i, m := range p.Members {
		if err := issueCertificate(files, i, m.Name, ca, key); err != nil {
			return nil, fmt.Errorf("certificate of member %s: %w", m.Name, err)
		}
	}
	return checkSecretSize(files)
}

// checkSecretSize are files that one Secret can hold.
func checkSecretSize(files map[string][]byte) (map[string][]byte, error) {
	size := 0
	for _, b := range files {
		size += len(b)
	}
	if size > maxSecret {
		return nil, fault.New(fault.Invalid, "the attempt's plan and certificates take %d bytes, and a Secret holds %d", size, maxSecret).
			Advise("shorten the script, or export less of the environment (--export), or have fewer pods")
	}
	return files, nil
}

// issueCertificate adds a member's certificate and key.
func issueCertificate(files map[string][]byte, i int, name string, ca *x509.Certificate, caKey ed25519.PrivateKey) error {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(int64(i) + 2), DNSNames: []string{name}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca, public, caKey)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	files[strconv.Itoa(i)+".crt"] = pemBlock("CERTIFICATE", der)
	files[strconv.Itoa(i)+".key"] = pemBlock("PRIVATE KEY", pkcs8)
	return nil
}

func pemBlock(kind string, der []byte) []byte {
	var b bytes.Buffer
	_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der})
	return b.Bytes()
}

// What a connection between members is for, as its client names it in the handshake.
const (
	forGang    = "cox-gang"    // from member 0: the member's hello, then its supervisor's control socket
	forControl = "cox-control" // the supervisor's control socket
	forStep    = "cox-step"    // the supervisor's step socket
	forEnd     = "cox-end"     // from member 0: one Outcome, that of the attempt
	forFiles   = "cox-files"   // to member 0: the archive of Plan.Upload, once that is there
)

// memberCert is by what members know each other.
type memberCert struct {
	members []Member
	own     tls.Certificate
	pool    *x509.CertPool
	resumed tls.ClientSessionCache
}

// readBadge reads a member's certificate, its key, and what others are checked by.
func readBadge(dir string, members []Member, index int) (*memberCert, error) {
	b := &memberCert{members: members, pool: x509.NewCertPool(), resumed: tls.NewLRUClientSessionCache(len(members))}
	ca, err := os.ReadFile(filepath.Join(dir, CAFile))
	if err == nil && !b.pool.AppendCertsFromPEM(ca) {
		err = fmt.Errorf("%s holds no certificate", CAFile)
	}
	if err == nil {
		name := filepath.Join(dir, strconv.Itoa(index))
		b.own, err = tls.LoadX509KeyPair(name+".crt", name+".key")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "certificates of the attempt: %w", err)
	}
	return b, nil
}

// serverTLS is how a member listens: TLS 1.3, and the client has to be a member.
func (b *memberCert) serverTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{b.own},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: b.pool,
		NextProtos:       []string{forGang, forControl, forStep, forEnd, forFiles},
		VerifyConnection: func(c tls.ConnectionState) error { _, err := b.peerMember(c); return err },
	}
}

// clientTLS is how a member connects to another one.
func (b *memberCert) clientTLS(to int, purpose string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{b.own}, RootCAs: b.pool,
		ServerName: b.members[to].Name, NextProtos: []string{purpose}, ClientSessionCache: b.resumed,
	}
}

// peerMember is the member at the other end of a connection that it made.
func (b *memberCert) peerMember(c tls.ConnectionState) (int, error) {
	if len(c.PeerCertificates) == 0 {
		return 0, fmt.Errorf("no certificate")
	}
	names := c.PeerCertificates[0].DNSNames
	for i, m := range b.members {
		if len(names) == 1 && names[0] == m.Name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is no member of the attempt", names)
}
