package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rightsTeller is a store whose server may take rights away from this process.
type rightsTeller interface {
	// Rights returns an error that names every right which is missing.
	Rights(ctx context.Context) error
}

// rights returns an error that names every right in Kafka which this process lacks, each with its resource and its
// operation, and every topic that is not there. A right that is missing shows by itself only where it is used: a
// processor without commands would look healthy.
func (e *Engine) rights(ctx context.Context) error {
	return errors.Join(e.topicRights(ctx), e.groupRights(ctx))
}

func (e *Engine) topicRights(ctx context.Context) error {
	name := e.kernel.Context.Name()
	type right struct {
		topic     string
		operation kmsg.ACLOperation
	}
	needed := []right{
		{e.topic, kmsg.ACLOperationRead},
		{e.replies, kmsg.ACLOperationWrite},
		{name + ".dead-letters", kmsg.ACLOperationWrite},
	}
	if e.cfg.Events {
		needed = append(needed, right{name + ".events", kmsg.ACLOperationWrite})
	}
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for i := range needed {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &needed[i].topic
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, e.producer)
	if err != nil {
		return fmt.Errorf("ask for the rights on topics: %w", err)
	}
	told := map[string]*kmsg.MetadataResponseTopic{}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic != nil {
			told[*t.Topic] = t
		}
	}
	var faults []error
	for _, n := range needed {
		t := told[n.topic]
		if t == nil {
			continue
		}
		switch err := kerr.ErrorForCode(t.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			faults = append(faults, fmt.Errorf("topic %s does not exist: create it (processor topics --create)", n.topic))
		case errors.Is(err, kerr.TopicAuthorizationFailed), err == nil && !allowed(t.AuthorizedOperations, n.operation):
			faults = append(faults, denied(n.operation, "topic", n.topic))
		}
	}
	return errors.Join(faults...)
}

func (e *Engine) groupRights(ctx context.Context) error {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{e.cfg.Group}, true
	resp, err := req.RequestWith(ctx, e.producer)
	operations := int32(0)
	if err == nil && len(resp.Groups) == 1 {
		err, operations = kerr.ErrorForCode(resp.Groups[0].ErrorCode), resp.Groups[0].AuthorizedOperations
	}
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed), err == nil && !allowed(operations, kmsg.ACLOperationRead):
		return denied(kmsg.ACLOperationRead, "group", e.cfg.Group)
	case errors.Is(err, kerr.GroupIDNotFound):
		return nil // nobody has joined it yet
	case err != nil:
		return fmt.Errorf("ask for the rights on group %s: %w", e.cfg.Group, err)
	}
	return nil
}

// allowed reports whether a set of operations, as brokers tell it, holds one. Brokers that tell nothing are taken at
// their deeds.
func allowed(operations int32, operation kmsg.ACLOperation) bool {
	const omitted = -1 << 31
	return operations == omitted || operations == 0 || operations&(1<<operation) != 0
}

func denied(operation kmsg.ACLOperation, kind, name string) error {
	return fmt.Errorf("%s of %s %s is not allowed: grant it, as deploy/kafka-acls.sh does", operation, kind, name)
}
