package sqlite

import (
	"context"

	"github.com/coxswain-sched/coxswain/store"
)

// defaultPurgeLimit makes a call that writers wait for take some tens of
// milliseconds at most.
const defaultPurgeLimit = 500

// Purge implements store.Store. A pack goes as a whole, when all of it is old,
// and not while a backup is made.
func (s *Store) Purge(ctx context.Context, epoch uint64, req store.PurgeRequest) (store.PurgeResult, error) {
	if req.Limit <= 0 {
		req.Limit = defaultPurgeLimit
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var res store.PurgeResult
	err := s.withWriter(ctx, epoch, func(c *conn) error {
		for _, step := range []func(*conn, *store.PurgeRequest, *store.PurgeResult) error{purgeRecords, purgeAudit, purgeJobs} {
			if err := step(c, &req, &res); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.PurgeResult{}, err
	}
	s.log.noteCommitted((res.Records + res.Audit + res.Jobs) * pageSize / 2)
	res.More = max(res.Records, res.Audit, res.Jobs) >= req.Limit
	if req.BlobsBefore.IsZero() || s.backups > 0 {
		return res, nil
	}
	if err := s.purgeSmall(ctx, epoch, &req, &res); err != nil {
		return res, classifyError(err)
	}
	if err := s.purgePacks(ctx, epoch, &req, &res); err != nil {
		return res, classifyError(err)
	}
	return res, s.purgeFiles(&req, &res)
}

// purgeRecords takes the beginning of the journal away and keeps the records with
// an actor as the audit.
func purgeRecords(c *conn, req *store.PurgeRequest, res *store.PurgeResult) error {
	if req.RecordsBefore.IsZero() {
		return nil
	}
	first, has, err := c.queryNumber("SELECT MIN(seq) FROM journal")
	if err != nil || !has {
		return err
	}
	newest, _, err := c.queryNumber("SELECT MAX(seq) FROM journal")
	if err != nil {
		return err
	}
	projected, err := readProjected(c)
	if err != nil {
		return err
	}
	end := min(first+int64(req.Limit), newest, int64(projected)+1) // exclusive
	young, has, err := c.queryNumber("SELECT seq FROM journal WHERE seq < ? AND at >= ? ORDER BY seq LIMIT 1", end, toMicros(req.RecordsBefore))
	if err != nil {
		return err
	}
	if has {
		end = young
	}
	if _, err := c.execRows("INSERT INTO audit SELECT * FROM journal WHERE seq < ? AND (by_name <> '' OR by_uid <> 0 OR by_from <> '')", end); err != nil {
		return err
	}
	res.Records, err = c.execRows("DELETE FROM journal WHERE seq < ?", end)
	return err
}

func purgeAudit(c *conn, req *store.PurgeRequest, res *store.PurgeResult) (err error) {
	if req.AuditBefore.IsZero() {
		return nil
	}
	res.Audit, err = c.execRows("DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < ?1 LIMIT ?2) AND +at < ?1", toMicros(req.AuditBefore), int64(req.Limit))
	return err
}

func purgeJobs(c *conn, req *store.PurgeRequest, res *store.PurgeResult) (err error) {
	if req.JobsEndedBefore.IsZero() {
		return nil
	}
	// The index says which ones may be old enough, the row itself whether it is.
	res.Jobs, err = c.execRows("DELETE FROM job WHERE id IN (SELECT id FROM job WHERE ended < ?1 AND final = 1 LIMIT ?2) AND +ended < ?1 AND +final = 1",
		toMicros(req.JobsEndedBefore), int64(req.Limit))
	return err
}
