package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs the certificates of a cluster.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

// pair is a certificate and its key, in PEM.
type pair struct{ cert, key []byte }

// newAuthority makes one.
func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	as := certificateTemplate(pkix.Name{CommonName: "lab"})
	as.IsCA, as.BasicConstraintsValid, as.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, as, as, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// certificateTemplate is one to be signed, good for two days.
func certificateTemplate(name pkix.Name) *x509.Certificate {
	number, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: number, Subject: name,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// signKey makes a key and its certificate: of a user and its groups, or of a server that has
// names and addresses.
func (a *authority) signKey(user string, groups []string, hosts ...string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	as := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			as.IPAddresses = append(as.IPAddresses, ip)
		} else {
			as.DNSNames = append(as.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, as, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, err
}

// tokenKeys is a key that signs tokens of service accounts, and the one that checks them.
func tokenKeys() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	open, err := x509.MarshalPKIXPublicKey(key.Public())
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open}), err
}

// writeKubeconfig writes a file by which a user reaches a server. Nothing else is needed.
func (a *authority) writeKubeconfig(file, server, user string, groups ...string) error {
	p, err := a.signKey(user, groups)
	if err != nil {
		return err
	}
	text := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	return os.WriteFile(file, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: lab, cluster: {server: %q, certificate-authority-data: %s}}
users:
- {name: lab, user: {client-certificate-data: %s, client-key-data: %s}}
contexts:
- {name: lab, context: {cluster: lab, user: lab}}
current-context: lab
`, server, text(a.pem), text(p.cert), text(p.key)), 0o600)
}

// clientTLS is the TLS of a user.
func (a *authority) clientTLS(user string, groups ...string) (*tls.Config, error) {
	p, err := a.signKey(user, groups)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
