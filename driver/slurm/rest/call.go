package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// most is the size of the largest answer that is read.
const most = 512 << 20

// response is what every answer has. The lists have what did not go well, whatever the HTTP
// status is: 22.05 answers 200 with an empty list of jobs where the token was not taken.
type response struct {
	Errors   []complaint `json:"errors"`
	Warnings []complaint `json:"warnings"`
	Meta     meta        `json:"meta"`
	Status   []struct {  // of each job that was to be signalled, from v0.0.42 on
		Error struct {
			Code   number `json:"code"`
			String text   `json:"string"`
		} `json:"error"`
	} `json:"status"`
}

type complaint struct {
	Number number `json:"error_number"`
	Code   number `json:"error_code"` // the same, in some places of v0.0.38
	Error  text   `json:"error"`
	What   text   `json:"description"`
}

type meta struct {
	Plugin struct {
		Accounts text `json:"accounting_storage"`
	} `json:"plugin"`
	Slurm release `json:"slurm"` // "Slurm" in v0.0.38: the decoder takes either
}

type release struct {
	Release text `json:"release"`
	Cluster text `json:"cluster"`
}

// firstFault is what the answer complains of; nil: of nothing.
func (s *response) firstFault(status int) *fault.Error {
	var worst *Refusal
	rank := 0
	add := func(r *Refusal) {
		// What was not read was not done; slurmctld's own number says more than "unspecified".
		of := map[fault.Kind]int{fault.Unavailable: 1, fault.Permission: 3, fault.NotFound: 3, fault.Invalid: 4}[kindOf(r.Errno)]
		if of == 1 && r.Errno > 0 {
			of = 2
		}
		if of > rank {
			worst, rank = r, of
		}
	}
	var words []string
	for _, e := range s.Errors {
		no := int(e.Number.n)
		if !e.Number.set {
			no = int(e.Code.n)
		}
		text := strings.TrimSpace(string(e.What))
		if text == "" || e.Error != "" && string(e.Error) != "Unspecified error" && !strings.Contains(text, string(e.Error)) {
			text = strings.TrimPrefix(text+": "+string(e.Error), ": ")
		}
		words = append(words, text)
		add(&Refusal{Errno: no})
	}
	for _, e := range s.Status {
		if no := int(e.Error.Code.n); no != 0 {
			words = append(words, string(e.Error.String))
			add(&Refusal{Errno: no})
		}
	}
	switch {
	case worst != nil:
		worst.Said = strings.Join(words, "; ")
		err := fault.New(kindOf(worst.Errno), "%w", worst)
		if worst.Errno == errWriting {
			return err.Advise("make room in slurmctld's StateSaveLocation (scontrol show config)")
		}
		return err
	case status >= 400:
		return fault.New(fault.Unavailable, "slurmrestd answered with HTTP status %d", status)
	}
	return nil
}

// request is one call.
type request struct {
	method string
	path   string // after the version: "/job/7"
	base   string // "slurm" or "slurmdb"
	query  url.Values
	body   []byte // JSON
	user   string // as whom; empty: the site's own user
}

// answer is what a request is answered with.
type answer interface{ asResponse() *response }

func (s *response) asResponse() *response { return s }

// callAPI makes a request and decodes the answer. What only asks is tried again with a new
// token, if the token may have been the reason.
func (s *Site) callAPI(ctx context.Context, r *request, out answer) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Deadline)
	defer cancel()
	user := r.user
	if user == "" {
		user = s.cfg.User
	}
	for again := true; ; again = false {
		token := ""
		if s.keep != nil {
			var err error
			if token, err = s.keep.tokenFor(ctx, user); err != nil {
				return err
			}
		}
		err := s.requestOnce(ctx, r, user, token, out)
		if err == nil || s.keep == nil || token == "" || !mayBlameToken(err) {
			return err
		}
		better := s.keep.noteRefused(ctx, user, token)
		if !again || !better || r.method != http.MethodGet {
			return err
		}
	}
}

// mayBlameToken reports whether an error may come from the token.
func mayBlameToken(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && (blamesToken(r.Errno) || r.Errno == unauthorized)
}

// unauthorized stands for HTTP's 401, which comes without a number of Slurm's.
const unauthorized = -401

// requestOnce makes one request.
func (s *Site) requestOnce(ctx context.Context, r *request, user, token string, out answer) error {
	version, err := s.findVersion(ctx, r.base, user, token)
	if err != nil {
		return err
	}
	status, body, err := s.sendRequest(ctx, r.method, "/"+r.base+"/"+version+r.path, r.query, r.body, user, token)
	if err != nil {
		return err
	}
	switch {
	case status == http.StatusUnauthorized:
		return s.unauthorizedError(user)
	case status == http.StatusNotFound && !json.Valid(body): // nothing is there by that address: it was replaced by another version
		s.forgetVersions()
		return fault.New(fault.Unavailable, "slurmrestd at %s does not know %s %s", s.cfg.URL, r.base, version)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fault.New(fault.Unavailable, "slurmrestd answered %s %s with HTTP status %d and what cannot be read: %w: %.200q", r.method, r.path, status, err, body)
	}
	if why := out.asResponse().firstFault(status); why != nil {
		return &fault.Error{Kind: why.Kind, Err: fmt.Errorf("%s %s: %w", r.method, r.path, why), Remedy: why.Remedy}
	}
	return nil
}

// sendRequest sends a request and reads the answer.
func (s *Site) sendRequest(ctx context.Context, method, path string, query url.Values, body []byte, user, token string) (int, []byte, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	address := s.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return 0, nil, fault.New(fault.Invalid, "the address of slurmrestd: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if content != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("X-SLURM-USER-NAME", user)
		req.Header.Set("X-SLURM-USER-TOKEN", token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		var u *url.Error // it has the whole address in it
		if errors.As(err, &u) {
			err = u.Err
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return 0, nil, fault.New(fault.Unavailable, "slurmrestd at %s did not answer %s %s: %w", s.cfg.URL, method, path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or not wanted
	if s.keep != nil {
		if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			s.keep.serverTime(at)
		}
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return 0, nil, fault.New(fault.Unavailable, "slurmrestd at %s broke its answer to %s %s off: %w", s.cfg.URL, method, path, err)
	case len(b) > most:
		return 0, nil, fault.New(fault.Unavailable, "slurmrestd's answer to %s %s is larger than %d MiB", method, path, most>>20)
	}
	return resp.StatusCode, b, nil
}
