package postgres

import (
	"context"
	"sort"

	"github.com/seed54173720/writ/pkg/store"
)

// blame finds the row of a lone unit that the store refuses, by trying more and more of its rows in transactions that
// are rolled back. What is refused in no row (a claim, the snapshot) is put down to the last one.
func (c *committer) blame(ctx context.Context, unit int, cause error) error {
	u := &c.units[unit]
	var away error
	row := sort.Search(len(u.Rows)-1, func(i int) bool {
		if away != nil {
			return false
		}
		c.encodeTrial(unit, i+1)
		err := c.send(ctx, "ROLLBACK")
		if err == nil {
			return false
		}
		switch classify(err) {
		case refused:
			return true
		case fault:
			away = err
		}
		return false
	})
	if away != nil {
		return away
	}
	c.fates[unit] = store.Fate{Verdict: store.Bad, Row: row, Err: cause}
	return nil
}

// encodeTrial fills the pipeline with the first rows of a unit and a rollback.
func (c *committer) encodeTrial(unit, rows int) {
	p := c.pipe
	p.reset()
	p.order = append(p.order, unit)
	p.execute(begin)
	c.encodeReplaced()
	p.beginCopy(copyRows)
	for i := range rows {
		p.buf = appendRow(p.buf, &c.units[unit].Rows[i])
		p.rowEnd()
	}
	p.endCopy()
	p.execute(rollback)
	p.sync()
}
