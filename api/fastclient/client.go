package fastclient

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Client talks to one server.
type Client struct {
	addr address.Address
	conn io.ReadWriteCloser
	buf  *bufio.Reader
	out  []byte
	last *Response

	upgrade string // header lines of a request that takes the connection over
}

// New returns a client of the server at an address. It does not connect yet.
func New(a address.Address) *Client { return &Client{addr: a} }

// Find returns a client of the server that package address finds.
func Find() (*Client, error) {
	a, err := address.Find("", "")
	if err != nil {
		return nil, err
	}
	return New(a), nil
}

// Close ends the connection.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn, c.buf = nil, nil
	}
}

// Response is an answer. It must be read to its end before the next request;
// Client.Do drops what was left.
type Response struct {
	Status int
	Media  string // of Content-Type, without parameters
	End    string // header or trailer Cox-Log-End

	src     *bufio.Reader
	left    int64 // bytes of the body or of the chunk; -1: until the connection ends
	chunked bool
	ended   bool
	close   bool
}

// Do sends one request and returns the answer, whatever its status. accept may be
// empty for JSON; a nil body sends none.
func (c *Client) Do(method, path, accept string, body []byte) (*Response, error) {
	if err := c.Send(method, path, accept, body); err != nil {
		return nil, err
	}
	return c.Receive()
}

// Send is the first half of Do: it sends a request and does not wait.
func (c *Client) Send(method, path, accept string, body []byte) error {
	if c.last != nil && (!c.last.ended || c.last.close) {
		c.Close()
	}
	c.last = nil
	if c.conn == nil {
		conn, err := dialServer(c.addr)
		if err != nil {
			return err
		}
		c.conn = conn
		c.buf = bufio.NewReaderSize(conn, 64<<10)
	}
	c.out = c.appendRequest(c.out[:0], method, path, accept, body)
	if _, err := c.conn.Write(c.out); err != nil {
		c.Close()
		return c.addr.Explain(err)
	}
	return nil
}

// Receive is the second half of Do.
func (c *Client) Receive() (*Response, error) {
	r, err := readHead(c.buf)
	if err != nil {
		c.Close()
		if errors.Is(err, io.EOF) {
			err = errors.New("the connection was closed")
		}
		return nil, fault.New(fault.Unavailable, "no answer from the server at %s: %w", c.addr, err).
			Advise("whether it was done is not known: look before you ask again")
	}
	c.last = r
	return r, nil
}

// FD is the connection's descriptor, to poll between Send and Receive; ok is false
// where there is none to be had (TCP).
func (c *Client) FD() (fd int, ok bool) {
	s, ok := c.conn.(socket)
	return int(s), ok
}

func (c *Client) appendRequest(b []byte, method, path, accept string, body []byte) []byte {
	if accept == "" {
		accept = "application/json"
	}
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, strings.TrimPrefix(c.addr.URL, "http://")...)
	b = append(b, "\r\n"+api.VersionHeader+": "+versionText+"\r\nAccept: "...)
	b = append(b, accept...)
	if c.addr.Token != "" {
		b = append(b, "\r\nAuthorization: Bearer "...)
		b = append(b, c.addr.Token...)
	}
	if body != nil {
		b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	b = append(b, c.upgrade...)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

// versionText is what VersionHeader carries.
var versionText = strconv.Itoa(api.Version) + "." + strconv.Itoa(api.Minor)

// Get asks for something. An answer with an error status is an *api.Error.
func (c *Client) Get(path, accept string) (*Response, error) {
	return c.roundTrip("GET", path, accept, nil)
}

// Post sends a body of JSON. An answer with an error status is an *api.Error.
func (c *Client) Post(path string, body []byte) (*Response, error) {
	return c.roundTrip("POST", path, "", body)
}

// JSON asks for something and reads the answer.
func (c *Client) JSON(method, path string, body []byte) (Value, error) {
	r, err := c.roundTrip(method, path, "", body)
	if err != nil {
		return Value{}, err
	}
	return r.JSON(path)
}

// JSON reads the body of an answer to a request for path. An answer with an error
// status is an *api.Error.
func (r *Response) JSON(path string) (Value, error) {
	if r.Status >= 400 {
		return Value{}, r.readProblem()
	}
	b, err := r.All()
	if err != nil {
		return Value{}, err
	}
	if len(b) == 0 {
		return Value{}, nil
	}
	v, err := Parse(b)
	if err != nil {
		return Value{}, fault.New(fault.Unavailable, "the server's answer to %s is not JSON: %w", path, err)
	}
	return v, nil
}

func (c *Client) roundTrip(method, path, accept string, body []byte) (*Response, error) {
	r, err := c.Do(method, path, accept, body)
	if err != nil {
		return nil, err
	}
	if r.Status >= 400 {
		return nil, r.readProblem()
	}
	return r, nil
}

// readProblem reads the body of an error.
func (r *Response) readProblem() error {
	b, err := r.All()
	if err != nil {
		return err
	}
	e := &api.Error{Status: r.Status, Title: "HTTP status " + strconv.Itoa(r.Status), Detail: strings.TrimSpace(string(b))}
	v, err := Parse(b)
	if err != nil {
		return e
	}
	if t := v.Get("title").Text(); t != "" {
		e.Title = t
	}
	e.Detail, e.Remedy = v.Get("detail").Text(), v.Get("remedy").Text()
	for _, p := range v.Get("errors").Items() {
		e.Errors = append(e.Errors, api.Located{
			File: p.Get("file").Text(), Line: int(p.Get("line").Int()), Col: int(p.Get("col").Int()), Len: int(p.Get("len").Int()),
			Text: p.Get("text").Text(), Message: p.Get("message").Text(), Remedy: p.Get("remedy").Text(),
		})
	}
	for _, why := range v.Get("reasons").Items() {
		e.Reasons = append(e.Reasons, reason.Reason{
			Code: reason.Code(why.Get("code").Text()), Resource: why.Get("resource").Text(), Want: why.Get("want").Text(),
			Need: why.Get("need").Int(), Free: why.Get("free").Int(), Most: why.Get("most").Int(),
		})
	}
	return e
}
