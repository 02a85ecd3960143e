SELECT resource, scope_name, scope_version, scope_attributes, schema_url FROM origins WHERE origin = $origin;
