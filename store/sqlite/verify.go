package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// Contents is what Verify has found in a state directory.
type Contents struct {
	Schema      int
	First, Last uint64 // of the journal
	Projected   uint64
	Audit       int // records that are kept as the audit only
	Jobs, Live  int
	Blobs       int
	Bytes       int64 // of blobs
}

// checkIsBackup refuses a folder without a journal.
func checkIsBackup(dir string) error {
	switch _, err := os.Stat(filepath.Join(dir, "journal.db")); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fault.New(fault.NotFound, "%s holds no backup: it has no file journal.db", dir).Advise("name a folder that cox backup made")
	case err != nil:
		return fault.New(fault.KindOf(err), "read the backup: %w", err)
	}
	return nil
}

// dialStill opens the database of a directory that nobody writes to, and leaves no
// file there.
func dialStill(dir string) (*conn, error) {
	if err := checkIsBackup(dir); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "journal.db")
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)"}}
	if info, err := os.Stat(file + "-wal"); err != nil || info.Size() == 0 {
		q.Set("immutable", "1")
	}
	return openConn(file, q)
}

// Verify reads a backup, or a state directory that nobody uses, from beginning to
// end: the database, the checksum of every row, the journal without gaps and up to its high-water
// mark, every blob and every archive that came with jobs by its hash. It changes nothing.
// fault.Internal, with store.ErrDamaged in its chain, says what is damaged.
func Verify(ctx context.Context, dir string) (got Contents, err error) {
	if err := checkIsBackup(dir); err != nil {
		return got, err
	}
	if _, spoilt, err := checkMark(dir); err != nil {
		return got, classifyError(err)
	} else if spoilt {
		return got, brokenError(dir, "%s", markName(dir))
	}
	c, err := dialStill(dir)
	if err != nil {
		return got, err
	}
	defer c.close()
	for _, step := range []func(context.Context, *conn, string, *Contents) error{verifyDatabase, verifyRows, verifyJournal, verifySmall, verifyPacks, verifyOld, verifyUploads} {
		if err := step(ctx, c, dir, &got); err != nil {
			return got, classifyError(err)
		}
	}
	return got, nil
}

func brokenError(dir, format string, args ...any) error {
	return fault.New(fault.Internal, "%s is %w: %w", dir, store.ErrDamaged, fmt.Errorf(format, args...)).Advise("use another backup")
}

func verifyDatabase(_ context.Context, c *conn, dir string, got *Contents) error {
	version, _, err := c.queryNumber("PRAGMA user_version")
	if err != nil {
		return err
	}
	switch got.Schema = int(version); {
	case got.Schema > len(schema):
		return tooNew(dir, got.Schema)
	case got.Schema < len(schema):
		return fault.New(fault.Unsupported, "%s has schema %d, this cox verifies schema %d", dir, got.Schema, len(schema)).
			Advise("verify it with the cox that wrote it, or start a server with a copy of it, which upgrades it")
	}
	if err := checkSchema(c, dir); err != nil {
		return err
	}
	return c.queryRows(func(row []driver.Value) error {
		if row[0] != "ok" {
			return brokenError(dir, "%v", row[0])
		}
		return nil
	}, "PRAGMA integrity_check(1)")
}

// namedAtMost is how many damaged rows an error names.
const namedAtMost = 10

// verifyRows checks the checksum of every row.
func verifyRows(ctx context.Context, c *conn, dir string, _ *Contents) error {
	var named []string
	n := 0
	for _, t := range tables {
		err := c.queryRows(func(row []driver.Value) error {
			if !t.isIntact(row) {
				if n++; n <= namedAtMost {
					named = append(named, t.damageOf(row).String())
				}
			}
			if ctx.Err() != nil {
				return unavailableError(ctx)
			}
			return nil
		}, t.selectRows()+" NOT INDEXED ORDER BY "+t.key)
		if err != nil {
			return err
		}
	}
	switch {
	case n > len(named):
		return brokenError(dir, "%d rows, the first of them: %s", n, strings.Join(named, "; "))
	case n > 0:
		return brokenError(dir, "%s", strings.Join(named, "; "))
	}
	return nil
}

func verifyJournal(_ context.Context, c *conn, dir string, got *Contents) error {
	var count int64
	err := c.queryRows(func(row []driver.Value) error {
		count = row[0].(int64)
		got.First, got.Last = uint64(row[1].(int64)), uint64(row[2].(int64))
		got.Projected, got.Audit = uint64(row[3].(int64)), int(row[4].(int64))
		got.Jobs, got.Live = int(row[5].(int64)), int(row[6].(int64))
		return nil
	}, `SELECT COUNT(*), COALESCE(MIN(seq), 1), COALESCE(MAX(seq), 0), (SELECT seq FROM projection WHERE name = 'job'),
		(SELECT COUNT(*) FROM audit), (SELECT COUNT(*) FROM job), (SELECT COUNT(*) FROM job WHERE final = 0) FROM journal`)
	switch {
	case err != nil:
		return err
	case uint64(count) != got.Last+1-got.First:
		return brokenError(dir, "the journal has %d records from %d to %d", count, got.First, got.Last)
	case got.First > got.Projected+1:
		return brokenError(dir, "the projection ends with record %d, the journal begins with %d", got.Projected, got.First)
	}
	return nil
}

// verifyPacks reads every pack that the index names; every row of the index must
// have been met, there or in the table small.
func verifyPacks(ctx context.Context, c *conn, dir string, got *Contents) error {
	type span struct{ id, size int64 }
	var packs []span
	err := c.queryRows(func(row []driver.Value) error {
		packs = append(packs, span{row[0].(int64), row[1].(int64)})
		return nil
	}, "SELECT id, size FROM pack ORDER BY id")
	if err != nil {
		return err
	}
	for _, p := range packs {
		if ctx.Err() != nil {
			return unavailableError(ctx)
		}
		_, err := walkPack(dir, p.id, 0, p.size, func(*key) bool { return true }, func(k *key, at place, b []byte) error {
			if sha256.Sum256(b) != *k {
				return fmt.Errorf("blob %x in %s", *k, packName(dir, p.id))
			}
			return c.queryRows(func(row []driver.Value) error {
				if scanPlace(row) == at {
					got.Blobs++
					got.Bytes += at.size
				}
				return nil
			}, "SELECT pack, at, size FROM blob WHERE hash = ?", k[:])
		})
		if err != nil {
			return brokenError(dir, "%w", err)
		}
	}
	rows, _, err := c.queryNumber("SELECT COUNT(*) FROM blob")
	if err == nil && int(rows) != got.Blobs {
		err = brokenError(dir, "%d of the %d blobs of the index are where it says", got.Blobs, rows)
	}
	return err
}

func verifyOld(ctx context.Context, _ *conn, dir string, got *Contents) error {
	entries, err := os.ReadDir(filepath.Join(dir, "blobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return unavailableError(ctx)
		}
		if raw, err := hex.DecodeString(e.Name()); err != nil || len(raw) != sha256.Size {
			continue // what a crash left of a blob that was not acknowledged
		}
		b, err := os.ReadFile(filepath.Join(dir, "blobs", e.Name()))
		if err != nil {
			return err
		}
		if store.Hash(b) != e.Name() {
			return brokenError(dir, "blob %s", e.Name())
		}
		got.Blobs++
		got.Bytes += int64(len(b))
	}
	return err
}

// verifyUploads reads the archives that came with jobs. A missing archive is no fault: the server
// removes those that no job needs any more.
func verifyUploads(ctx context.Context, _ *conn, dir string, _ *Contents) error {
	return eachUpload(dir, func(user, name string) error {
		if ctx.Err() != nil {
			return unavailableError(ctx)
		}
		file := filepath.Join(dir, uploads, user, name)
		in, err := os.Open(file)
		if err != nil {
			return err
		}
		defer in.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != name {
			return fault.New(fault.Internal, "%s is damaged: %s, a directory that came with jobs", dir, file).
				Advise("use another backup; or remove that file: jobs that have not begun and need it will fail")
		}
		return nil
	})
}
