-- Prints what the steps of docs/migrate.md for a large table lose or fail on, by step: commands, and comments where no command helps.
-- The steps replace a column, so this is everything that refers to the column. The script reads only the catalog. It needs psql, and
-- the variables "table", with its schema, and "column".
BEGIN READ ONLY;
SET LOCAL search_path = pg_catalog, pg_temp;   -- so that all names are printed with their schemas
-- Constants are printed as pg_dump prints them, which every session reads alike.
SET LOCAL datestyle = ISO; SET LOCAL intervalstyle = postgres; SET LOCAL extra_float_digits = 3; SET LOCAL standard_conforming_strings = on;
WITH key AS (
    SELECT c.*, a.*, c.oid::regclass::text AS tab, quote_ident(attname) AS col, nspname, format('ALTER TABLE %s ', c.oid::regclass) AS alter,
        regexp_replace(quote_ident(attname), '([^[:alnum:]_ ])', '\\\1', 'g') AS word
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace JOIN pg_attribute AS a ON attrelid = c.oid
    WHERE c.oid = :'table'::regclass AND attname = :'column' AND attnum > 0
), used_by AS (   -- also what needs a constraint of the column, such as a view with GROUP BY
    SELECT classid, objid, objsubid FROM key JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = attrelid AND refobjsubid = attnum
    UNION SELECT classid, objid, objsubid
    FROM key JOIN pg_constraint AS k ON conrelid = attrelid AND attnum = ANY (conkey) JOIN pg_depend ON refclassid = 'pg_constraint'::regclass AND refobjid = k.oid
    WHERE deptype = 'n'
), constraints AS (
    SELECT k.*, k.conrelid::regclass::text AS on_table, format('ALTER TABLE %s ', k.conrelid::regclass) AS alter,
        format('constraint %I on %s', conname, k.conrelid::regclass) AS title, format('DROP CONSTRAINT %I', conname) AS dropping,
        format('ADD CONSTRAINT %I ', conname) AS adding, pg_get_constraintdef(k.oid) AS def, r.relkind = 'p' AS is_partitioned
    FROM key CROSS JOIN pg_constraint AS k JOIN pg_class AS r ON r.oid = k.conrelid
    WHERE k.oid IN (SELECT objid FROM used_by WHERE classid = 'pg_constraint'::regclass) AND conparentid = 0 AND conname <> 'wide_is_equal'
), copies AS (
    SELECT i.*, c.relname, indexrelid::regclass AS index, k.conname, k.contype, k.condeferrable, k.condeferred, k.def AS constraint_def, k.alter, k.adding, k.title,
        -- The definition for the new column, unless the old name could be a part of a string or of another name.
        CASE WHEN indisexclusion OR regexp_replace(tail, ' WITH \([^)]*\)', '') ~ ('''|""|"[^"]*\m' || word || '\M[^"]*"') THEN NULL
        ELSE format('CREATE %sINDEX CONCURRENTLY %I ON %s USING %s %s;', CASE WHEN indisunique THEN 'UNIQUE ' END, wide_name, tab, method,
            regexp_replace(regexp_replace(regexp_replace(tail, '(?<![\w.:"$])' || word || '(?![\w("$.])', 'wide', 'g'),
                '(?<=\mwide )int[24]_(\w*ops)\M', 'int8_\1', 'g'), '( WHERE \(|$)',
                CASE WHEN c.reltablespace > 0 THEN format(' TABLESPACE %I\1', spcname) ELSE '\1' END)) END AS copy, wide_name, c.def
    FROM key JOIN pg_index AS i ON indrelid = attrelid JOIN (SELECT oid AS indexrelid, relname, reltablespace, CASE WHEN octet_length(relname::text) <= 58
                THEN relname ELSE left(relname, 11) || '_' || oid END || '_wide' AS wide_name,
            pg_get_indexdef(oid) AS def, substring(pg_get_indexdef(oid), '^.*? USING (\S+) ') AS method,
            regexp_replace(pg_get_indexdef(oid), '^.*? USING \S+ ', '') AS tail FROM pg_class WHERE relkind = 'i') AS c USING (indexrelid)
        LEFT JOIN pg_tablespace AS s ON s.oid = c.reltablespace LEFT JOIN constraints AS k ON conindid = indexrelid AND contype IN ('p', 'u', 'x')
    WHERE indisvalid AND (k.oid > 0 OR indexrelid IN (SELECT objid FROM used_by WHERE classid = 'pg_class'::regclass))
), indexes AS (
    SELECT *, CASE WHEN copy IS NULL THEN '-- At the end of step 4, after DROP COLUMN and the rename: ' ELSE '' END AS late FROM copies
), owned (classid, objid, owner) AS (   -- what the commands change, other than with ALTER ROUTINE
    SELECT 'pg_class'::regclass, oid, relowner FROM pg_class WHERE oid IN (SELECT attrelid FROM key
        UNION SELECT unnest(ARRAY[conrelid, confrelid]) FROM constraints
        UNION SELECT polrelid FROM used_by JOIN pg_policy AS p ON classid = 'pg_policy'::regclass AND p.oid = objid
        UNION SELECT ev_class FROM used_by JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND r.oid = objid)
    UNION SELECT classid, objid, proowner FROM used_by JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
    UNION SELECT classid, objid, stxowner FROM used_by JOIN pg_statistic_ext AS s ON classid = 'pg_statistic_ext'::regclass AND s.oid = objid
    UNION SELECT 'pg_publication'::regclass, p.oid, pubowner FROM used_by JOIN pg_publication_rel AS r ON classid = 'pg_publication_rel'::regclass AND r.oid = objid
        JOIN pg_publication AS p ON p.oid = prpubid
), triggers AS (
    SELECT t.*, t.oid IN (SELECT objid FROM used_by WHERE classid = 'pg_trigger'::regclass) AS names_column, prosrc,
        format('trigger %I on %s', tgname, tgrelid::regclass) AS title, pg_get_triggerdef(t.oid) || ';' AS def
    FROM key JOIN pg_trigger AS t ON tgrelid = attrelid JOIN pg_proc AS p ON p.oid = tgfoid
    WHERE NOT tgisinternal AND tgname <> 'zzzz_widen'
), routines AS (
    SELECT 'function ' || p.oid::regprocedure AS title, pg_has_role(proowner, 'USAGE') AS is_ours, quote_ident(pg_get_userbyid(proowner)) AS owner,
        format('ALTER ROUTINE %s SECURITY %s;', p.oid::regprocedure, CASE WHEN prosecdef THEN 'DEFINER' ELSE 'INVOKER' END) AS compile
    FROM key CROSS JOIN pg_proc AS p JOIN pg_language AS l ON l.oid = prolang JOIN pg_namespace AS n ON n.oid = pronamespace
    WHERE lanname = 'plpgsql' AND n.nspname !~ '^pg_temp_' AND (p.oid IN (SELECT tgfoid FROM triggers) OR reltype = prorettype OR reltype = ANY (proargtypes)
        OR prosrc ~* ('(?<!\w)' || regexp_replace(relname, '(\W)', '\\\1', 'g') || '(?!\w)'))
), found (step, n, title, what) AS (
    SELECT '1', 0, tab, '-- These steps do not work for ' || CASE
            WHEN relkind = 'p' THEN 'a partitioned table' WHEN relkind <> 'r' THEN 'this kind of table' WHEN reloftype > 0 THEN 'a table OF a type'
            WHEN relispartition OR EXISTS (SELECT FROM pg_inherits WHERE attrelid IN (inhrelid, inhparent)) THEN 'a table with a parent or children'
            WHEN attgenerated <> '' THEN 'a generated column' WHEN atttypid <> ALL ('{int2,int4}'::regtype[]) THEN 'the type ' || atttypid::regtype
        END || '.' FROM key
    UNION ALL SELECT '1', 1, format('column %s of %s', c.attname, tab), '-- Rename this column: the steps use the name.'
    FROM key JOIN pg_attribute AS c USING (attrelid) WHERE c.attname IN ('wide', 'narrow')
        AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = attrelid AND tgname = 'zzzz_widen')
    UNION ALL SELECT '1', 1, title, '-- Rename this trigger, so that its name sorts before zzzz_widen.' FROM triggers WHERE tgtype & 3 = 3 AND tgtype & 20 > 0 AND tgname > 'zzzz_widen'
    UNION ALL SELECT '1', 1, title, '-- Its function calls nextval: see "Calls to nextval".' FROM triggers WHERE prosrc ~* '\mnextval\M'
    UNION ALL SELECT '1', 1, pg_describe_object(classid, objid, 0), '-- Drop this generated column. Or change it to a plain column with DROP EXPRESSION, and let a trigger fill it.'
    FROM used_by JOIN pg_attrdef AS d ON classid = 'pg_attrdef'::regclass AND d.oid = objid JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE attgenerated <> ''
    UNION ALL SELECT '1', 2, format('column %I of %s', c.attname, conrelid::regclass), '-- It references the key: first run all steps for this column.'
    FROM constraints JOIN key ON confrelid = attrelid JOIN pg_attribute AS c ON c.attrelid = conrelid AND c.attnum = conkey[array_position(confkey, key.attnum)]
    WHERE c.atttypid <> 'int8'::regtype AND (conrelid, c.attnum) <> (key.attrelid, key.attnum)
    UNION ALL SELECT '1', 2, title, '-- Step 4 checks this foreign key while it locks the tables, because the referencing table is partitioned.' FROM constraints WHERE is_partitioned
    UNION ALL SELECT '1', 2, format('publication %I', pubname), '-- On each subscriber, first run all steps, and then ' || alter || 'ADD COLUMN wide bigint. Drop that column after step 4 here.'
    FROM key JOIN pg_publication_tables AS p ON schemaname = nspname AND tablename = relname
    WHERE NOT EXISTS (SELECT FROM pg_publication_rel JOIN pg_publication AS q ON q.oid = prpubid WHERE q.pubname = p.pubname AND prrelid = attrelid AND prattrs IS NOT NULL)
    UNION ALL SELECT '1', 2, format('column %I of %s', c.attname, c.attrelid::regclass), format('-- It stores rows of %s, whose %s will be null: replace this column.', tab, col)
    FROM key JOIN pg_type AS t ON t.oid = reltype JOIN pg_attribute AS c ON c.atttypid IN (t.oid, typarray)
    UNION ALL SELECT '1', 2, pg_describe_object(d.classid, d.objid, 0), format('-- It uses %s: see "Tables with common IDs".', s.objid::regclass)
    FROM used_by AS s JOIN pg_depend AS d ON s.classid = 'pg_class'::regclass AND d.refclassid = s.classid AND d.refobjid = s.objid AND d.classid = 'pg_attrdef'::regclass
        JOIN pg_sequence ON seqrelid = s.objid JOIN pg_attrdef AS a ON a.oid = d.objid JOIN key ON (adrelid, adnum) <> (attrelid, attnum)
    UNION ALL SELECT '1', 3, pg_describe_object(classid, objid, 0), format('-- It belongs to the role %I: run the steps as a superuser, or as a member of both roles.', pg_get_userbyid(owner))
    FROM owned WHERE NOT pg_has_role(owner, 'USAGE')
    UNION ALL SELECT '1', 3, title, format('-- It belongs to the role %s, which should run after step 4: %s', owner, compile) FROM routines WHERE NOT is_ours
    UNION ALL SELECT '1', 3, title, '-- Check that it accepts the new IDs, which exceed 2^31: ' || def FROM constraints WHERE contype = 'c' AND def ~ '<(?!>)'
    UNION ALL SELECT '2', 0, title, '-- It fires in this step'
        || CASE tgenabled WHEN 'O' THEN ', unless a superuser runs SET session_replication_role = replica before.' ELSE '.' END
    FROM triggers WHERE tgtype & 16 > 0 AND tgattr = '' AND tgenabled IN ('O', 'A')
    UNION ALL SELECT '2', 0, format('rule %I on %s', rulename, tab), '-- Disable this rule during step 2, whose UPDATE it changes.' FROM key JOIN pg_rewrite ON ev_class = attrelid AND ev_type = '2'
    UNION ALL SELECT '2', 0, format('constraint %I on %s', conname, tab), '-- It is not validated: this step fails at a row that violates it.'
    FROM key JOIN pg_constraint AS k ON conrelid = attrelid AND contype = 'c' AND NOT convalidated
    WHERE conname <> 'wide_is_equal' AND to_jsonb(k) ->> 'conenforced' IS DISTINCT FROM 'false'
    UNION ALL SELECT '2', 0, 'row security of ' || tab, '-- Run step 2 as a role with BYPASSRLS.' FROM key WHERE relforcerowsecurity
    UNION ALL SELECT '3', indisunique::int, 'index ' || index, coalesce(copy, CASE WHEN conname IS NULL
        THEN '-- Create this index on the column wide, and rename it at the end of step 4: ' || def ELSE late || alter || adding || constraint_def END) FROM indexes
    UNION ALL SELECT '3', 2, format('INSERT INTO %s … ON CONFLICT (%s)', tab, col),
        '-- Until step 4, it can fail with 23505 when two sessions insert the same key. Retry it, or use ON CONFLICT DO NOTHING without columns.'
    FROM key WHERE EXISTS (SELECT FROM indexes WHERE indisunique)
    UNION ALL SELECT '4 first', 1, pg_describe_object('pg_class'::regclass, ev_class, 0), '-- Drop it here, and create it again at the end of step 4, as pg_dump --schema-only --table prints it.'
    FROM pg_rewrite AS r JOIN used_by ON classid = 'pg_rewrite'::regclass AND r.oid = objid WHERE rulename = '_RETURN'
    UNION ALL SELECT '4 first', 1, pg_describe_object(classid, objid, objsubid), '-- Drop it here, and create it again at the end of step 4.'
    FROM used_by WHERE classid::regclass <> ALL ('{pg_attrdef,pg_class,pg_constraint,pg_policy,pg_proc,pg_publication_rel,pg_rewrite,pg_statistic_ext,pg_trigger}'::regclass[])
    UNION ALL SELECT '4 first', 0, 'locks', format('LOCK TABLE %s;', string_agg(name, ', ' ORDER BY n, name))
    FROM (SELECT tab, 1 FROM key UNION SELECT confrelid::regclass::text, 0 FROM constraints, key WHERE contype = 'f' AND confrelid <> attrelid
        UNION SELECT on_table, 2 FROM constraints, key WHERE contype = 'f' AND conrelid <> attrelid) AS l (name, n)
    UNION ALL SELECT '4 first', 2 + position(contype::text IN 'fpu'), title, alter || dropping || ';' FROM constraints WHERE contype IN ('f', 'p', 'u')
    UNION ALL SELECT '4 first', 8, 'sequence ' || seqrelid::regclass, format('SELECT set_config(''widen.sequence'', concat_ws('' '', last_value, is_called), true) FROM %s;', seqrelid::regclass)
    FROM key, pg_sequence WHERE attidentity <> '' AND seqrelid IN (SELECT objid FROM used_by WHERE classid = 'pg_class'::regclass)
    UNION ALL SELECT '4 first', 9, 'default of ' || col, alter || format('ALTER COLUMN %s DROP %s;', col, CASE attidentity WHEN '' THEN 'DEFAULT' ELSE 'IDENTITY' END)
    FROM key WHERE attgenerated = '' AND atthasdef OR attidentity <> ''
    UNION ALL SELECT '4 first', 9, 'replica identity', key.alter || 'REPLICA IDENTITY DEFAULT;' FROM key, indexes WHERE indisreplident
    UNION ALL SELECT '4 first', 10, 'NOT NULL of ' || col, alter || format('ALTER COLUMN %s DROP NOT NULL;', col) FROM key WHERE attnotnull
    -- Since 18, it is a constraint, which may have a name of its own.
    UNION ALL SELECT '4 last', 0, 'NOT NULL of ' || col, key.alter || coalesce(adding || def, format('ALTER COLUMN %s SET NOT NULL', col)) || ';'
    FROM key LEFT JOIN constraints ON contype = 'n' AND (conname, def) <> (concat_ws('_', relname, attname, 'not_null'), 'NOT NULL ' || col) WHERE attnotnull
    UNION ALL SELECT '4 last', 1, title, alter || adding || CASE contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END || format(' USING INDEX %I', wide_name)
        || CASE WHEN condeferrable THEN ' DEFERRABLE' ELSE '' END || CASE WHEN condeferred THEN ' INITIALLY DEFERRED' ELSE '' END || ';'
    FROM indexes WHERE contype IN ('p', 'u') AND copy IS NOT NULL
    UNION ALL SELECT '4 last', 1, 'index ' || index, format('DROP INDEX %s; ALTER INDEX %I.%I RENAME TO %I;', index, nspname, wide_name, relname)
    FROM indexes CROSS JOIN (SELECT nspname FROM key) AS s WHERE conname IS NULL AND copy IS NOT NULL
    UNION ALL SELECT '4 last', 2, 'statistics target of ' || index, late || format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s;', index, attnum, attstattarget)
    FROM indexes JOIN pg_attribute ON attrelid = indexrelid WHERE attstattarget >= 0
    UNION ALL SELECT '4 last', 2, 'replica identity', late || key.alter || format('REPLICA IDENTITY USING INDEX %I;', i.relname) FROM key, indexes AS i WHERE indisreplident
    UNION ALL SELECT '4 last', 2, 'CLUSTER', late || key.alter || format('CLUSTER ON %I;', i.relname) FROM key, indexes AS i WHERE indisclustered
    UNION ALL SELECT '4 last', 3, 'default of ' || col, alter || format('ALTER COLUMN %s SET DEFAULT %s;', col, pg_get_expr(adbin, adrelid))
    FROM key JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attgenerated = ''
    UNION ALL SELECT '4 last', 3, 'sequence ' || seqrelid::regclass, CASE attidentity WHEN '' THEN format('ALTER SEQUENCE %s OWNED BY %s.%s;', seqrelid::regclass, tab, col)
        ELSE alter || format('ALTER COLUMN %s ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s START %s INCREMENT %s MINVALUE %s MAXVALUE %s CACHE %s%s); ',
            col, CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, seqrelid::regclass, seqstart, seqincrement,
            CASE seqmin WHEN -highest - 1 THEN '-9223372036854775808' ELSE seqmin::text END, CASE seqmax WHEN highest THEN '9223372036854775807' ELSE seqmax::text END,
            seqcache, CASE WHEN seqcycle THEN ' CYCLE' END)
            || format('SELECT setval(%L, split_part(s, '' '', 1)::bigint, split_part(s, '' '', 2)::boolean) FROM current_setting(''widen.sequence'') AS s;', seqrelid::regclass) END
    FROM key, pg_sequence, LATERAL (SELECT CASE seqtypid WHEN 'int2'::regtype THEN 32767 ELSE 2147483647 END::bigint AS highest) AS t WHERE seqrelid IN (SELECT objid FROM used_by WHERE classid = 'pg_class'::regclass)
    UNION ALL SELECT '4 last', 4, 'privileges on ' || on_what, format('GRANT %s ON %s TO %s%s;', privilege, on_what, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
        CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
    FROM (SELECT a.*, format('%s (%s)', privilege_type, col) AS privilege, tab AS on_what FROM key, aclexplode(attacl) AS a
        UNION ALL SELECT a.*, privilege_type, 'SEQUENCE ' || s.oid::regclass FROM key, pg_class AS s, aclexplode(s.relacl) AS a
        WHERE attidentity <> '' AND s.relkind = 'S' AND s.oid IN (SELECT objid FROM used_by WHERE classid = 'pg_class'::regclass) AND grantee <> s.relowner) AS a
    UNION ALL SELECT '4 last', 5, 'statistics target of ' || col, alter || format('ALTER COLUMN %s SET STATISTICS %s;', col, attstattarget) FROM key WHERE attstattarget >= 0
    UNION ALL SELECT '4 last', 5, 'options of ' || col, alter || format('ALTER COLUMN %s SET (%s);', col, option) FROM key, unnest(attoptions) AS option WHERE option LIKE 'n\_distinct%'
    UNION ALL SELECT '4 last', 5, 'label of ' || col, format('SECURITY LABEL FOR %I ON COLUMN %s.%s IS %L;', provider, tab, col, label)
    FROM key JOIN pg_seclabel ON classoid = 'pg_class'::regclass AND objoid = attrelid AND objsubid = attnum
    UNION ALL SELECT '4 last', 6, title, alter || dropping || ', ' || adding || def || CASE WHEN convalidated THEN ' NOT VALID' ELSE '' END || ';' FROM constraints WHERE contype = 'c'
    UNION ALL SELECT '4 last', 7, 'statistics ' || stxname, format('DROP STATISTICS %I.%I; %s;', nspname, stxname, pg_get_statisticsobjdef(s.oid))
            || CASE WHEN stxstattarget >= 0 THEN format(' ALTER STATISTICS %I.%I SET STATISTICS %s;', nspname, stxname, stxstattarget) ELSE '' END
            || CASE WHEN pg_get_userbyid(stxowner) <> current_user THEN format(' ALTER STATISTICS %I.%I OWNER TO %I;', nspname, stxname, pg_get_userbyid(stxowner)) ELSE '' END
    FROM used_by JOIN pg_statistic_ext AS s ON classid = 'pg_statistic_ext'::regclass AND s.oid = objid JOIN pg_namespace AS n ON n.oid = stxnamespace
    UNION ALL SELECT '4 last', 7, format('policy %I on %s', polname, polrelid::regclass), format('ALTER POLICY %I ON %s', polname, polrelid::regclass)
            || coalesce(' USING (' || pg_get_expr(polqual, polrelid) || ')', '') || coalesce(' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')', '') || ';'
    FROM used_by JOIN pg_policy AS p ON classid = 'pg_policy'::regclass AND p.oid = objid
    UNION ALL SELECT '4 last', 7, format('rule %I on %s', rulename, ev_class::regclass), regexp_replace(pg_get_ruledef(r.oid), '^CREATE', 'CREATE OR REPLACE')
    FROM used_by JOIN pg_rewrite AS r ON classid = 'pg_rewrite'::regclass AND r.oid = objid WHERE rulename <> '_RETURN'
    UNION ALL SELECT '4 last', 7, title, CASE tgconstraint WHEN 0 THEN regexp_replace(def, '^CREATE', 'CREATE OR REPLACE') ELSE format('DROP TRIGGER %I ON %s; %s', tgname, tgrelid::regclass, def) END
            || CASE WHEN tgenabled <> 'O' THEN format(' ALTER TABLE %s %s TRIGGER %I;', tgrelid::regclass,
                CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE REPLICA' END, tgname) ELSE '' END
    FROM triggers WHERE names_column
    UNION ALL SELECT '4 last', 7, 'function ' || objid::regprocedure, pg_get_functiondef(objid) || ';' FROM used_by WHERE classid = 'pg_proc'::regclass
    UNION ALL SELECT '4 last', 7, format('publication %I', pubname), format('ALTER PUBLICATION %I DROP TABLE %s; ALTER PUBLICATION %1$I ADD TABLE %2$s', pubname, tab)
            || coalesce((SELECT ' (' || string_agg(quote_ident(c.attname), ', ') || ')' FROM pg_attribute AS c WHERE c.attrelid = prrelid AND c.attnum = ANY (prattrs)), '')
            || coalesce(' WHERE (' || pg_get_expr(prqual, prrelid) || ')', '') || ';'
    FROM key CROSS JOIN used_by JOIN pg_publication_rel AS r ON classid = 'pg_publication_rel'::regclass AND r.oid = objid JOIN pg_publication AS p ON p.oid = prpubid
    UNION ALL SELECT '4 last', 8, k.title, coalesce(late, '') || k.alter || k.adding || k.def || CASE WHEN convalidated AND NOT is_partitioned THEN ' NOT VALID' ELSE '' END || ';'
    FROM constraints AS k LEFT JOIN indexes ON indexrelid = conindid WHERE k.contype = 'f'
    UNION ALL SELECT '4 last', 9, 'comment on ' || on_what, late || format('COMMENT ON %s IS %L;', on_what, description)
    FROM (SELECT format('COLUMN %s.%s', tab, col), 'pg_class'::regclass, attrelid, attnum::int, '' FROM key
        UNION ALL SELECT format('CONSTRAINT %I ON %s', k.conname, on_table), 'pg_constraint'::regclass, k.oid, 0, coalesce(late, '')
        FROM constraints AS k LEFT JOIN indexes ON indexrelid = conindid
        UNION ALL SELECT format('INDEX %s', index), 'pg_class'::regclass, indexrelid, 0, late FROM indexes
        UNION ALL SELECT format('SEQUENCE %s', objid::regclass), classid, objid, 0, '' FROM used_by, key WHERE attidentity <> '' AND classid = 'pg_class'::regclass AND objid IN (SELECT seqrelid FROM pg_sequence)
        UNION ALL SELECT format('STATISTICS %I.%I', nspname, stxname), classid, objid, 0, '' FROM used_by JOIN pg_statistic_ext AS s ON s.oid = objid JOIN pg_namespace AS n ON n.oid = stxnamespace
        UNION ALL SELECT format('TRIGGER %I ON %s', tgname, tgrelid::regclass), 'pg_trigger'::regclass, oid, 0, '' FROM triggers WHERE names_column) AS o (on_what, classoid, objoid, objsubid, late)
        JOIN pg_description USING (classoid, objoid, objsubid)
    UNION ALL SELECT '4 last', 10, 'compiled in open sessions', compile FROM routines WHERE is_ours
    UNION ALL SELECT '5', 0, title, alter || regexp_replace(dropping, '^DROP', 'VALIDATE') || ';' FROM constraints WHERE contype IN ('c', 'f') AND convalidated AND NOT is_partitioned
    UNION ALL SELECT '5', 1, 'extended statistics', format('ANALYZE %s;', tab) FROM key WHERE EXISTS (SELECT FROM used_by WHERE classid = 'pg_statistic_ext'::regclass)
)
SELECT format(E'-- %s: %s\n', step, translate(title, E'\n\r', '  ')) || CASE WHEN what LIKE '--%' THEN translate(what, E'\n\r', '  ') ELSE what END
FROM found WHERE what IS NOT NULL ORDER BY step, n, title, what \g (format=unaligned tuples_only=on)
COMMIT;
