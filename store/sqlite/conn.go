package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"
)

// conn is one SQLite connection with the statements that it has prepared. It goes
// to the driver without database/sql: a record costs a few microseconds, and the
// pool, its locks and its conversions would cost as much again. Not safe for
// concurrent use.
//
// No context reaches SQLite: every statement is short, and one that is interrupted
// half-way would leave open whether it took effect.
type conn struct {
	c     driver.Conn
	stmts map[string]driver.Stmt
	row   []driver.Value
}

// pragmas hold for every connection. synchronous(FULL) is what makes a commit
// durable; checkpoints are run off the path of a commit (checkpoint.go).
var pragmas = []string{
	"busy_timeout(10000)", "page_size(4096)", "journal_mode(WAL)", "journal_size_limit(67108864)", "synchronous(FULL)", "wal_autocheckpoint(0)", "temp_store(MEMORY)",
}

// openConn opens a connection to a database file.
func openConn(file string, query url.Values) (*conn, error) {
	u := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: query.Encode()}
	c, err := new(sqlite.Driver).Open(u.String())
	if err != nil {
		return nil, classifyError(fmt.Errorf("open %s: %w", file, err))
	}
	return &conn{c: c, stmts: map[string]driver.Stmt{}}, nil
}

func (c *conn) prepareCached(query string) (driver.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.c.Prepare(query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = s
	return s, nil
}

// execRows runs a statement and says how many rows it changed.
func (c *conn) execRows(query string, args ...driver.Value) (int, error) {
	res, err := c.execResult(query, args)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

func (c *conn) execResult(query string, args []driver.Value) (driver.Result, error) {
	s, err := c.prepareCached(query)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(context.Background(), namedValues(args))
}

// runScript runs several statements that are not kept.
func (c *conn) runScript(text string) error {
	_, err := c.c.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

// queryRows calls f, which must not use c, for each row of the answer. The values are
// the row's until the next one; bytes among them are f's to keep.
func (c *conn) queryRows(f func(row []driver.Value) error, query string, args ...driver.Value) (err error) {
	s, err := c.prepareCached(query)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), namedValues(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if n := len(rows.Columns()); cap(c.row) < n {
		c.row = make([]driver.Value, n)
	}
	row := c.row[:len(rows.Columns())]
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// queryNumber returns the one number that a query answers with; it has is false if
// there is no row or the number is NULL.
func (c *conn) queryNumber(query string, args ...driver.Value) (n int64, has bool, err error) {
	err = c.queryRows(func(row []driver.Value) error {
		n, has = row[0].(int64)
		return nil
	}, query, args...)
	return n, has, err
}

// inTransaction runs f in one transaction that has the write lock from its beginning.
func (c *conn) inTransaction(f func() error) error {
	if _, err := c.execRows("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		if _, err = c.execRows("COMMIT"); err == nil {
			return nil
		}
	}
	// A full disk ends some transactions by itself: a failed ROLLBACK then says so.
	_, _ = c.execRows("ROLLBACK")
	return err
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

func namedValues(args []driver.Value) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}
