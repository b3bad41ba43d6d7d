package topics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Create makes the topics that are missing, waits until the brokers know them and
// returns their names; it changes nothing about those that exist. Several processes
// may call it at once. An error joins the faults of all topics; the others are
// created all the same.
func Create(ctx context.Context, admin *kadm.Client, topics []Topic) (created []string, err error) {
	existing, err := list(ctx, admin, topics)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, t := range topics {
		if existing.Has(t.Name) {
			continue
		}
		switch err := create(ctx, admin, t); {
		case err == nil:
			created = append(created, t.Name)
		case !errors.Is(err, kerr.TopicAlreadyExists): // else somebody was faster
			faults = append(faults, fmt.Errorf("topics: create %s: %w", t.Name, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return created, err
	}
	return created, settled(ctx, admin, topics)
}

// settled waits until each partition has a leader: the controller answers before
// the brokers have heard of a new topic.
func settled(ctx context.Context, admin *kadm.Client, topics []Topic) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		existing, err := list(ctx, admin, topics)
		if err == nil && ready(existing, topics) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("topics: wait for the new topics: %w", errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func ready(existing kadm.TopicDetails, topics []Topic) bool {
	for _, t := range topics {
		if len(existing[t.Name].Partitions) == 0 {
			return false
		}
		for _, p := range existing[t.Name].Partitions {
			if p.Leader < 0 {
				return false
			}
		}
	}
	return true
}

// create asks the brokers first how many copies there will be: only they know
// their default, and min.insync.replicas must stand from the first record on.
func create(ctx context.Context, admin *kadm.Client, t Topic) error {
	configs := make(map[string]*string, len(t.Configs)+1)
	for name, value := range t.Configs {
		configs[name] = &value
	}
	if t.MinInSync > 0 {
		dry, err := admin.ValidateCreateTopics(ctx, t.Partitions, t.Replication, configs, t.Name)
		if err != nil {
			return err
		}
		r, err := dry.On(t.Name, nil)
		if err := explained(r, err); err != nil {
			return err
		}
		if r.ReplicationFactor >= 3 {
			configs[minInSync] = new(strconv.Itoa(int(t.MinInSync)))
		}
	}
	r, err := admin.CreateTopic(ctx, t.Partitions, t.Replication, configs, t.Name)
	if r.Err == nil {
		return err
	}
	return explained(r, nil)
}

// explained is the error of a response with the brokers' words to it.
func explained(r kadm.CreateTopicResponse, err error) error {
	switch {
	case err != nil:
		return err
	case r.Err != nil && r.ErrMessage != "":
		return fmt.Errorf("%w (%s)", r.Err, r.ErrMessage)
	}
	return r.Err
}

// list looks the topics up; one that does not exist is missing in the answer.
func list(ctx context.Context, admin *kadm.Client, topics []Topic) (kadm.TopicDetails, error) {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	// Only a request that also asks for rights passes by the client's cache, which
	// is seconds old.
	details, err := admin.ListTopics(kadm.WithAuthorizedOps(ctx), names...)
	var denied *kadm.AuthError
	if errors.As(err, &denied) && len(topics) > 1 {
		return nil, whichDenied(ctx, admin, topics, err) // it does not say
	}
	if err != nil {
		return nil, fmt.Errorf("topics: look up %q: %w", names, err)
	}
	for name, d := range details {
		switch {
		case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			delete(details, name)
		case d.Err != nil:
			return nil, fmt.Errorf("topics: look up %s: %w", name, d.Err)
		}
	}
	return details, nil
}

// whichDenied returns an error that names the topics which may not be looked at.
func whichDenied(ctx context.Context, admin *kadm.Client, topics []Topic, err error) error {
	var faults []error
	for _, t := range topics {
		if _, err := list(ctx, admin, []Topic{t}); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 {
		return err
	}
	return errors.Join(faults...)
}
