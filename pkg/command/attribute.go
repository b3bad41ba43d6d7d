package command

// attribute numbers the CloudEvents attributes that a command knows. Those that
// are kept as text come first.
type attribute uint8

const (
	attrID attribute = iota
	attrSource
	attrType
	attrSubject
	attrTenant
	attrOwner
	attrSpace
	attrCorrelationID
	attrCausationID
	attrReplyTo
	attrTraceParent
	attrSpecVersion // not kept
	attrTime
	attrExpectedVersion
	attrExpiryTime
	attrReplyPartition
	attrWaitFor
	attributes // the number of all

	texts = attrSpecVersion // the number of those kept as text
)

var attributeNames = [attributes]string{
	attrID:              "id",
	attrSource:          "source",
	attrType:            "type",
	attrSubject:         "subject",
	attrTenant:          "tenant",
	attrOwner:           "owner",
	attrSpace:           "space",
	attrCorrelationID:   "correlationid",
	attrCausationID:     "causationid",
	attrReplyTo:         "replyto",
	attrTraceParent:     "traceparent",
	attrSpecVersion:     "specversion",
	attrTime:            "time",
	attrExpectedVersion: "expectedversion",
	attrExpiryTime:      "expirytime",
	attrReplyPartition:  "replypartition",
	attrWaitFor:         "waitfor",
}

func (a attribute) String() string { return attributeNames[a] }

// headerNames are the names in binary mode.
var headerNames = func() (names [attributes]string) {
	for a, name := range attributeNames {
		names[a] = prefix + name
	}
	return names
}()

// attributeOf finds an attribute by name. A switch beats a map here: it is asked
// for every header of every record.
func attributeOf(name string) (attribute, bool) {
	switch name {
	case "id":
		return attrID, true
	case "source":
		return attrSource, true
	case "type":
		return attrType, true
	case "subject":
		return attrSubject, true
	case "tenant":
		return attrTenant, true
	case "owner":
		return attrOwner, true
	case "space":
		return attrSpace, true
	case "correlationid":
		return attrCorrelationID, true
	case "causationid":
		return attrCausationID, true
	case "replyto":
		return attrReplyTo, true
	case "traceparent":
		return attrTraceParent, true
	case "specversion":
		return attrSpecVersion, true
	case "time":
		return attrTime, true
	case "expectedversion":
		return attrExpectedVersion, true
	case "expirytime":
		return attrExpiryTime, true
	case "replypartition":
		return attrReplyPartition, true
	case "waitfor":
		return attrWaitFor, true
	}
	return 0, false
}
