package engine

// fifo is a queue whose memory is given back as it empties. Guarded by its owner's mutex.
type fifo[T any] struct {
	items []T
	head  int
	wake  func() // called after a push
}

func (q *fifo[T]) push(v T) {
	q.items = append(q.items, v)
	q.wake()
}

func (q *fifo[T]) pop() (v T, ok bool) {
	if q.head == len(q.items) {
		return v, false
	}
	var zero T
	v, q.items[q.head] = q.items[q.head], zero
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		q.items, q.head = append(q.items[:0], q.items[q.head:]...), 0
	}
	return v, true
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }
