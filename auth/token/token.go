// Package token makes and checks access tokens.
//
// A token is cox_ID_SECRETSUM in letters and digits: a public ID, 256 random bits,
// and a checksum over all before it, so that a mistyped or cut token is told from
// a wrong one without a look-up, and a scanner can find lost ones. A server keeps
// the SHA-256 of the whole; from that nobody makes the token. Hashing slowly would
// add nothing: there is no password to guess.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

const (
	prefix    = "cox_"
	idLen     = 10
	secretLen = 43 // 256 bits in base 62
	sumLen    = 6  // 32 bits in base 62
	digits    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Made is a new token. Secret is shown once and not kept.
type Made struct {
	ID     string
	Secret string // the whole token
	Hash   string // SHA-256 of Secret in hex, which is kept
}

// New makes a token from the system's random source.
func New() (Made, error) { return From(rand.Reader) }

// From makes a token from a random source.
func From(random io.Reader) (Made, error) {
	id, err := letters(random, idLen)
	if err != nil {
		return Made{}, err
	}
	secret, err := letters(random, secretLen)
	if err != nil {
		return Made{}, err
	}
	body := prefix + id + "_" + secret
	whole := body + checksum(body)
	return Made{ID: id, Secret: whole, Hash: Hash(whole)}, nil
}

// letters draws n digits of base 62, each alike likely.
func letters(random io.Reader, n int) (string, error) {
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		if _, err := io.ReadFull(random, buf[:]); err != nil {
			return "", fault.New(fault.Unavailable, "the system gives no random numbers: %w", err)
		}
		for _, b := range buf {
			if b &= 63; b < 62 && len(out) < n {
				out = append(out, digits[b])
			}
		}
	}
	return string(out), nil
}

func checksum(s string) string {
	n := crc32.ChecksumIEEE([]byte(s))
	var b [sumLen]byte
	for i := sumLen - 1; i >= 0; i-- {
		b[i] = digits[n%62]
		n /= 62
	}
	return string(b[:])
}

// Hash is what is kept of a token.
func Hash(whole string) string {
	sum := sha256.Sum256([]byte(whole))
	return hex.EncodeToString(sum[:])
}

// ID returns the public part of a token whose form and checksum are right.
func ID(whole string) (string, error) {
	rest, ok := strings.CutPrefix(whole, prefix)
	if !ok {
		return "", broken("it does not begin with " + prefix)
	}
	id, secret, ok := strings.Cut(rest, "_")
	switch {
	case !ok || len(id) != idLen:
		return "", broken("its first part is not whole")
	case len(secret) != secretLen+sumLen:
		return "", broken("a part of it is missing or too much")
	case whole[len(whole)-sumLen:] != checksum(whole[:len(whole)-sumLen]):
		return "", broken("its checksum is wrong")
	}
	return id, nil
}

func broken(why string) error {
	return fault.New(fault.Permission, "the access token is damaged: %s", why).
		Advise("copy it again as a whole, or make a new one: cox token create")
}

// Kept is what a server knows of a token.
type Kept struct {
	Hash    string
	Expires time.Time // zero: never
	Revoked time.Time // zero: it is not
}

// Check returns nil if the token is the one that is kept, and valid at that time.
// The comparison takes the same time wherever they differ.
func (k Kept) Check(whole string, now time.Time) error {
	if subtle.ConstantTimeCompare([]byte(Hash(whole)), []byte(k.Hash)) != 1 {
		return Wrong()
	}
	return k.Valid(now)
}

// Valid returns nil if a token that was checked may still be used at that time.
func (k Kept) Valid(now time.Time) error {
	switch {
	case !k.Revoked.IsZero():
		return fault.New(fault.Permission, "the access token was revoked at %s", k.Revoked.UTC().Format(time.RFC3339)).
			Advise("make a new one on the server's machine: cox token create")
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return fault.New(fault.Permission, "the access token expired at %s", k.Expires.UTC().Format(time.RFC3339)).
			Advise("make a new one on the server's machine: cox token create")
	}
	return nil
}

// Wrong is the error of a token that nobody knows, or whose secret is not right:
// both look alike from outside.
func Wrong() error {
	return fault.New(fault.Permission, "the access token is not known here").
		Advise("it may be of another server: see COX_SERVER and COX_TOKEN; a new one: cox token create")
}
