package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/registry"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// checkPatience is how long a registry may take to answer.
const checkPatience = 30 * time.Second

// checkLogin asks a registry whether it takes a user and password, by the first request of the
// distribution specification. Insecure takes any certificate, and plain HTTP where the registry
// speaks no TLS.
func checkLogin(ctx context.Context, c registry.Credential, insecure bool) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: insecure} //nolint:gosec // the user asked for it by --tls-verify=false
	t := &trial{Credential: c, client: &http.Client{
		Transport: transport,
		// A password goes only to whom it is meant for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, insecure: insecure}
	defer transport.CloseIdleConnections()
	host := c.Host
	if host == registry.Hub {
		host = "registry-1.docker.io"
	}
	err := t.askRegistry(ctx, "https://"+host+"/v2/")
	if insecure && err != nil && fault.KindOf(err) != fault.Permission {
		err = t.askRegistry(ctx, "http://"+host+"/v2/")
	}
	return err
}

// trial is one check of a login.
type trial struct {
	registry.Credential

	client   *http.Client
	insecure bool
}

// askRegistry asks without a password how one logs in, and then with it.
func (t *trial) askRegistry(ctx context.Context, at string) error {
	status, challenge, err := t.get(ctx, at, false)
	switch {
	case err != nil:
		return fault.New(fault.Unavailable, "the registry %s does not answer: %w", t.Host, bareError(err)).
			Advise("check its name and port; for one without a known certificate add --tls-verify=false")
	case status == http.StatusOK:
		return fault.New(fault.Invalid, "the registry %s asks for no password", t.Host).Advise("no login is needed there")
	case status != http.StatusUnauthorized:
		return fault.New(fault.Unavailable, "%s is no registry of images: it answers with status %d", t.Host, status).Advise("check its name and port")
	}
	scheme, rest, _ := strings.Cut(challenge, " ")
	switch strings.ToLower(scheme) {
	case "basic":
	case "bearer":
		if at, err = t.tokenURL(rest); err != nil {
			return err
		}
	default:
		return fault.New(fault.Unsupported, "the registry %s asks for a login of kind %q, and Coxswain knows Basic and Bearer", t.Host, scheme).
			Advise("log in with the runtime's own command, for example podman login %s", t.Host)
	}
	status, _, err = t.get(ctx, at, true)
	switch {
	case err != nil:
		return fault.New(fault.Unavailable, "the registry %s does not answer: %w", t.Host, bareError(err)).Advise("try again")
	case status == http.StatusOK:
		return nil
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.New(fault.Permission, "the registry %s refuses user %s with this password", t.Host, t.User).Advise("correct the user name or the password")
	}
	return fault.New(fault.Unavailable, "the registry %s answers with status %d", t.Host, status).Advise("try again")
}

// parameter is one of a challenge.
var parameter = regexp.MustCompile(`(\w+)="([^"]*)"`)

// tokenURL is where a token is got, by the words of a challenge.
func (t *trial) tokenURL(words string) (string, error) {
	of := map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(words, -1) {
		of[strings.ToLower(m[1])] = m[2]
	}
	u, err := url.Parse(of["realm"])
	if err != nil || u.Host == "" || u.Scheme != "https" && !(t.insecure && u.Scheme == "http") {
		return "", fault.New(fault.Unavailable, "the registry %s says to log in at %q, which is no address with TLS", t.Host, of["realm"]).
			Advise("tell the registry's administrator, or add --tls-verify=false")
	}
	q := u.Query()
	q.Set("account", t.User)
	if of["service"] != "" {
		q.Set("service", of["service"])
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// get makes a request, with the password or without, and returns what the answer says of logins.
func (t *trial) get(ctx context.Context, at string, login bool) (status int, challenge string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, "", err
	}
	if login {
		req.SetBasicAuth(t.User, t.Password)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)); err != nil {
		return 0, "", fmt.Errorf("read the answer: %w", err)
	}
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), nil
}

// bareError is an error of a request without the address, which the caller names.
func bareError(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}
