package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Submit hands in work. With TestOnly nothing is kept.
func (c *Client) Submit(ctx context.Context, s *api.Submit) (*api.Submitted, error) {
	return callJSON[api.Submitted](ctx, c, http.MethodPost, api.Prefix+"/jobs", nil, s)
}

// Uploads says what the server takes of directories that come with jobs and, of a digest,
// whether that archive is there.
func (c *Client) Uploads(ctx context.Context, digest string) (*api.Uploads, error) {
	q := url.Values{}
	if digest != "" {
		q.Set("digest", digest)
	}
	return callJSON[api.Uploads](ctx, c, http.MethodGet, api.Prefix+"/uploads", q, nil)
}

// Upload sends the archive of a directory (package upload), which takes as long as it takes.
func (c *Client) Upload(ctx context.Context, digest string, size int64, archive io.Reader) error {
	req, err := c.apiRequest(ctx, http.MethodPut, api.Prefix+"/uploads/"+url.PathEscape(digest), nil, nil)
	if err != nil {
		return err
	}
	req.Body, req.ContentLength = io.NopCloser(archive), size
	req.Header.Set("Content-Type", "application/gzip")
	resp, err := c.sendRequest(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Advise says where work belongs and why, with what the server has to offer. The
// answer is what `cox advise -o json` prints.
func (c *Client) Advise(ctx context.Context, s *api.Submit) (json.RawMessage, error) {
	out, err := callJSON[json.RawMessage](ctx, c, http.MethodPost, api.Prefix+"/advise", nil, s)
	if err != nil {
		return nil, err
	}
	return *out, nil
}

// Query says which jobs to list. Empty sets do not restrict; States: live jobs and
// those that ended a moment ago for "all", live ones if empty.
type Query struct {
	api.Select
	Limit    int    // of a page; 0: as the server likes
	Cursor   string // Next of the page before
	Collapse bool   // pending tasks of an array as one row, 7_[1-4,9%2]
}

func (q Query) urlValues() url.Values { return jobQuery(q.Select, q.Limit, q.Cursor, q.Collapse) }

func jobQuery(s api.Select, limit int, cursor string, collapse bool) url.Values {
	v := url.Values{}
	set := func(name string, values []string) {
		if len(values) > 0 {
			v.Set(name, strings.Join(values, ","))
		}
	}
	set("ids", s.IDs)
	set("users", s.Users)
	set("accounts", s.Accounts)
	set("partitions", s.Partitions)
	set("qos", s.QOS)
	set("names", s.Names)
	set("states", s.States)
	set("nodes", s.Nodes)
	if limit > 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	if collapse {
		v.Set("collapse", "true")
	}
	return v
}

// JobsPage returns one page of jobs, by number.
func (c *Client) JobsPage(ctx context.Context, q Query) (*api.Jobs, error) {
	return callJSON[api.Jobs](ctx, c, http.MethodGet, api.Prefix+"/jobs", q.urlValues(), nil)
}

// Jobs walks over all jobs of a query, page by page. A job that is there from the
// first page to the last comes exactly once, whatever comes and goes meanwhile.
func (c *Client) Jobs(ctx context.Context, q Query) iter.Seq2[api.Job, error] {
	return jobPages(q.Cursor, func(cursor string) ([]api.Job, string, error) {
		q.Cursor = cursor
		p, err := c.JobsPage(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return p.Jobs, p.Next, nil
	})
}

func jobPages(cursor string, page func(cursor string) ([]api.Job, string, error)) iter.Seq2[api.Job, error] {
	return func(yield func(api.Job, error) bool) {
		for {
			jobs, next, err := page(cursor)
			if err != nil {
				yield(api.Job{}, err)
				return
			}
			for _, j := range jobs {
				if !yield(j, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}

// JobsTSV returns the columns of all jobs of a query as text, one line a job (see
// package column, api.UnescapeTSV). The caller closes it.
func (c *Client) JobsTSV(ctx context.Context, q Query, columns ...string) (io.ReadCloser, error) {
	return c.requestTSV(ctx, "/jobs", q.urlValues(), columns)
}

func (c *Client) requestTSV(ctx context.Context, path string, v url.Values, columns []string) (io.ReadCloser, error) {
	if len(columns) == 0 {
		return nil, fault.New(fault.Invalid, "no columns were asked for")
	}
	v.Set("columns", strings.Join(columns, ","))
	resp, err := c.openStream(ctx, api.Prefix+path, v, api.TSV)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Job returns one job, also one that ended long ago. name is 7 or 7_3.
func (c *Client) Job(ctx context.Context, name string) (*api.Job, error) {
	return callJSON[api.Job](ctx, c, http.MethodGet, jobPath(name, ""), nil, nil)
}

// Series returns how a job used CPUs, memory and devices over its time.
func (c *Client) Series(ctx context.Context, name string) (*api.Series, error) {
	return callJSON[api.Series](ctx, c, http.MethodGet, jobPath(name, "series"), nil, nil)
}

// Usage returns what a job used, or has used so far.
func (c *Client) Usage(ctx context.Context, name string) (*api.Usage, error) {
	return callJSON[api.Usage](ctx, c, http.MethodGet, jobPath(name, "usage"), nil, nil)
}

func jobPath(name, what string) string {
	p := api.Prefix + "/jobs/" + url.PathEscape(name)
	if what != "" {
		p += "/" + what
	}
	return p
}

// Why returns everything that keeps a job waiting.
func (c *Client) Why(ctx context.Context, name string) (*api.Why, error) {
	return callJSON[api.Why](ctx, c, http.MethodGet, jobPath(name, "why"), nil, nil)
}

// Script returns the batch script as it was submitted.
func (c *Client) Script(ctx context.Context, name string) ([]byte, error) {
	return c.requestText(ctx, jobPath(name, "script"))
}

// Environment returns the NAME=VALUE pairs that were submitted.
func (c *Client) Environment(ctx context.Context, name string) ([]string, error) {
	b, err := c.requestText(ctx, jobPath(name, "environment"))
	if err != nil {
		return nil, err
	}
	var env []string
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if len(kv) > 0 {
			env = append(env, string(kv))
		}
	}
	return env, nil
}

func (c *Client) requestText(ctx context.Context, path string) ([]byte, error) {
	b, _, err := c.readWhole(ctx, path, nil, "")
	return b, err
}

// readWhole reads an answer that is not JSON to its end, with its head.
func (c *Client) readWhole(ctx context.Context, path string, v url.Values, accept string) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errSlow)
	defer cancel()
	resp, err := c.openStream(ctx, path, v, accept)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, c.explainTransport(ctx, err)
	}
	return b, resp.Header, nil
}

// LogOptions say which output of a job.
type LogOptions struct {
	Stream string // "stdout" (default) or "stderr"
	Step   *int   // nil: the job's own files; otherwise the log of a rank of a step
	Rank   *int   // nil with Step: rank 0; set without Step: that rank of the last step
	Follow bool   // go on until the job has ended
	Tail   int    // only the last lines; 0: all
	From   int64  // byte of the output to begin with; not with Tail
}

// Logs is OpenLog for who does not go on after a connection that broke.
func (c *Client) Logs(ctx context.Context, name string, o LogOptions) (io.ReadCloser, error) {
	l, err := c.OpenLog(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Log is output of a job. It is not safe for concurrent use.
type Log struct{ resp *http.Response }

// From is the byte of the output with which it begins; -1: the server does not say.
func (l *Log) From() int64 {
	n, err := strconv.ParseInt(l.resp.Header.Get(api.LogFrom), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Close ends it.
func (l *Log) Close() error { return l.resp.Body.Close() }

// Read reads on. Where the connection broke or the server ended the error is fault.Unavailable.
func (l *Log) Read(b []byte) (int, error) {
	n, err := l.resp.Body.Read(b)
	switch end := l.resp.Trailer.Get(api.LogEnd); {
	case err == nil:
	case !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = fault.New(fault.Unavailable, "the log was cut off: %w", err)
	case end != "" && end != "end" && end != "job-ended":
		err = fault.New(fault.Unavailable, "the server cut the log off: %s", end)
	}
	return n, err
}

// OpenLog returns output of a job. With Follow reading goes on until the job has ended or ctx does. The
// caller closes it.
func (c *Client) OpenLog(ctx context.Context, name string, o LogOptions) (*Log, error) {
	v := url.Values{}
	if o.Stream != "" {
		v.Set("stream", o.Stream)
	}
	if o.Step != nil {
		v.Set("step", strconv.Itoa(*o.Step))
	}
	if o.Rank != nil {
		v.Set("rank", strconv.Itoa(*o.Rank))
	}
	if o.Follow {
		v.Set("follow", "true")
	}
	if o.Tail > 0 {
		v.Set("tail", strconv.Itoa(o.Tail))
	}
	if o.From > 0 {
		v.Set("from", strconv.FormatInt(o.From, 10))
	}
	resp, err := c.openStream(ctx, jobPath(name, "logs"), v, "")
	if err != nil {
		return nil, err
	}
	return &Log{resp}, nil
}

// Files returns an archive (package upload) of a file or directory below the working directory of a job;
// an empty path is all of a directory that came with the job. A read returns an error where the server
// could not send all of it. The caller closes it.
func (c *Client) Files(ctx context.Context, name, path string) (io.ReadCloser, error) {
	v := url.Values{}
	if path != "" {
		v.Set("path", path)
	}
	resp, err := c.openStream(ctx, jobPath(name, "files"), v, "application/gzip")
	if err != nil {
		return nil, err
	}
	return &filesBody{resp}, nil
}

// filesBody is an archive whose trailer says whether it is whole.
type filesBody struct{ resp *http.Response }

func (f *filesBody) Close() error { return f.resp.Body.Close() }

func (f *filesBody) Read(b []byte) (int, error) {
	n, err := f.resp.Body.Read(b)
	if end := f.resp.Trailer.Get(api.FilesEnd); errors.Is(err, io.EOF) && end != "end" && end != "" {
		err = fault.New(fault.Unavailable, "the server could not send all files: %s", end).Advise("fetch them again")
	}
	return n, err
}

// Wait returns a job once it has ended. It goes on asking over a broken connection
// or a restart of the server, as long as that takes less than a minute.
func (c *Client) Wait(ctx context.Context, name string) (*api.Job, error) {
	const each = 30 * time.Second
	v := url.Values{"timeout": {strconv.Itoa(min(int(each.Seconds()), int(c.timeout.Seconds()/2)+1))}}
	return retryUnavailable(ctx, func() (*api.Job, error) {
		return callJSON[api.Job](ctx, c, http.MethodGet, jobPath(name, "wait"), v, nil)
	})
}

// retryUnavailable asks until there is an answer, over a broken connection or a restart of the server,
// as long as that takes less than a minute.
func retryUnavailable[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	var lost time.Time
	for pause := firstPause; ; {
		v, err := ask()
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, errNothing):
			lost, pause = time.Time{}, firstPause
			continue
		case ctx.Err() != nil || fault.KindOf(err) != fault.Unavailable:
			return v, err
		case lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > time.Minute:
			return v, err
		}
		if !sleepContext(ctx, pause) {
			return v, err
		}
		pause = min(2*pause, lastPause)
	}
}

// tasksPage is how many tasks one request of Tasks is for.
const tasksPage = 10000

var taskColumns = []column.Column{
	column.ID, column.Name, column.State, column.Attempt, column.ExitStatus, column.ExitSignal,
	column.Submitted, column.Started, column.Ended, column.Message,
}

// Tasks returns in short how the tasks of an array are, by number: state, exit code, times to the
// second and message, without specification. What the history has dropped is not there. As Wait it
// goes on asking over a restart of the server.
func (c *Client) Tasks(ctx context.Context, array job.ID) ([]api.Job, error) {
	var out []api.Job
	q := HistoryQuery{Select: api.Select{IDs: []string{array.String()}}, Limit: tasksPage}
	for {
		page, err := retryUnavailable(ctx, func() (*api.History, error) { return c.taskPage(ctx, q) })
		if err != nil {
			return nil, err
		}
		if out = append(out, page.Jobs...); page.Next == "" {
			slices.Reverse(out)
			return out, nil
		}
		q.Cursor = page.Next
	}
}

// taskPage reads one page, the newest first.
func (c *Client) taskPage(ctx context.Context, q HistoryQuery) (*api.History, error) {
	v := q.urlValues()
	v.Set("columns", column.Join(taskColumns))
	b, head, err := c.readWhole(ctx, api.Prefix+"/history", v, api.TSV)
	if err != nil {
		return nil, err
	}
	out := &api.History{Next: head.Get(api.NextHeader)}
	for line := range strings.Lines(string(b)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != len(taskColumns) {
			return nil, fault.New(fault.Unsupported, "the answer of the server at %s is not understood: %d columns instead of %d", c.addr, len(fields), len(taskColumns)).
				Advise("client and server may be of different versions: cox version and cox info show them")
		}
		var n [10]int64
		for i, f := range fields {
			n[i], _ = strconv.ParseInt(f, 10, 64) // of the columns that are numbers
		}
		out.Jobs = append(out.Jobs, api.Job{
			ID: job.ID(n[0]), Name: fields[1], State: fields[2], Attempt: uint32(n[3]), Exit: job.ExitCode{Status: int(n[4]), Signal: int(n[5])},
			Submitted: unixSecond(n[6]), Started: unixSecond(n[7]), Ended: unixSecond(n[8]), Message: api.UnescapeTSV(fields[9]),
		})
	}
	return out, nil
}

func unixSecond(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// sleepContext waits; false: ctx has ended.
func sleepContext(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Change makes the same change to all jobs of a selection, in one durable step.
// Jobs that could not be changed are in the answer, not in the error.
func (c *Client) Change(ctx context.Context, ch *api.Change) (*api.Changed, error) {
	return callJSON[api.Changed](ctx, c, http.MethodPost, api.Prefix+"/jobs/change", nil, ch)
}

// HistoryQuery says which jobs of the store to list, live ones included, newest
// first. From and To bound the time in which a job lived; zero: unbounded.
type HistoryQuery struct {
	api.Select
	From, To time.Time
	Limit    int
	Cursor   string
}

func (q HistoryQuery) urlValues() url.Values {
	v := jobQuery(q.Select, q.Limit, q.Cursor, false)
	if !q.From.IsZero() {
		v.Set("from", q.From.UTC().Format(time.RFC3339Nano))
	}
	if !q.To.IsZero() {
		v.Set("to", q.To.UTC().Format(time.RFC3339Nano))
	}
	return v
}

// HistoryPage returns one page of history.
func (c *Client) HistoryPage(ctx context.Context, q HistoryQuery) (*api.History, error) {
	return callJSON[api.History](ctx, c, http.MethodGet, api.Prefix+"/history", q.urlValues(), nil)
}

// History walks over all jobs of a query, newest first.
func (c *Client) History(ctx context.Context, q HistoryQuery) iter.Seq2[api.Job, error] {
	return jobPages(q.Cursor, func(cursor string) ([]api.Job, string, error) {
		q.Cursor = cursor
		p, err := c.HistoryPage(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return p.Jobs, p.Next, nil
	})
}

// HistoryTSV is JobsTSV over the history.
func (c *Client) HistoryTSV(ctx context.Context, q HistoryQuery, columns ...string) (io.ReadCloser, error) {
	return c.requestTSV(ctx, "/history", q.urlValues(), columns)
}
